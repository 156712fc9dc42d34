package postgres

import "holdfast/internal/durable"

// recoverySync returns how PostgreSQL, before crash recovery, ensures that the
// data directory is on disk: by one syncfs(2) instead of an fsync for each of a
// thousand files, which took 0.5 to 1.3 s of a restart on a busy disk. Where
// syncfs reports no write errors, it returns PostgreSQL's default.
func recoverySync() string {
	if durable.SyncfsReports() {
		return "syncfs"
	}
	return "fsync"
}
