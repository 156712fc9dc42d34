package postgres

import "holdfast/internal/durable"

// recoverySync is how PostgreSQL, before it recovers from a crash, makes sure
// that what it finds in the data directory is on the disk: one syncfs(2)
// instead of an fsync for each of a thousand files, which took 0.5 to 1.3 s of
// a restart here on a busy disk. Where that reports no write errors, it is
// PostgreSQL's default.
func recoverySync() string {
	if durable.SyncfsReports() {
		return "syncfs"
	}
	return "fsync"
}
