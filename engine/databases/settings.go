package databases

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"holdfast/engine/core"
	"holdfast/engine/model"
)

// The share of the machine's memory that instances may fill with shared
// buffers, and among how many of them it is shared out at the least.
const (
	bufferShare  = 4 // a quarter
	leastSharing = 8
)

// settings returns a database's settings: fitted to the machine, then what
// the operator has set. PostgreSQL takes the pages of shared buffers when it
// first fills them, but writes their descriptors at its start, about 1 MB for
// each 64: so an idle database stays small only while the buffers do.
func (s *Service) settings(db model.Database) map[string]string {
	settings := map[string]string{}
	if host, err := core.MeasureHost(s.core.Config.DataDir); err == nil && host.MemoryTotal != nil {
		settings = fitSettings(*host.MemoryTotal, host.DiskFree, s.databaseCount())
	}
	maps.Copy(settings, db.Settings)
	return settings
}

// fitSettings shares a machine's memory, in bytes, out among its databases, and
// bounds what one process may put into temporary files: a quarter of the free
// disk, but 1 GB to 1 TB.
func fitSettings(memory, diskFree int64, databases int) map[string]string {
	const mb = 1 << 20
	part := memory / bufferShare / int64(max(databases, leastSharing))
	return map[string]string{
		"shared_buffers":       megabytes(clamp(part, 32*mb, 256*mb)),
		"effective_cache_size": megabytes(clamp(memory/2, 128*mb, 64*1024*mb)),
		"work_mem":             megabytes(clamp(part/64, 4*mb, 64*mb)),
		"maintenance_work_mem": megabytes(clamp(part/4, 32*mb, 512*mb)),
		"temp_file_limit":      megabytes(clamp(diskFree/4, 1024*mb, 1024*1024*mb)),
	}
}

// keepFitted puts back into settings what was fitted to the machine when the
// instance in dir was started, if it may still run. The machine is shared out
// among another number of databases by now, and an instance with other
// settings would be restarted and not adopted; it is fitted anew when it next
// starts.
func keepFitted(settings map[string]string, db model.Database, dir string) {
	if core.Absent(dir, "postmaster.pid") { // it was stopped in order
		return
	}
	conf, err := os.ReadFile(filepath.Join(dir, "postgresql.conf"))
	if err != nil {
		return
	}
	fitted := fitSettings(0, 0, 0) // for the names
	for line := range strings.Lines(string(conf)) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " = ")
		_, operators := db.Settings[name]
		if _, ours := fitted[name]; ours && !operators {
			settings[name] = strings.Trim(value, "'")
		}
	}
}

func clamp(n, least, most int64) int64 { return max(least, min(n, most)) }

func megabytes(n int64) string { return fmt.Sprintf("%dMB", n>>20) }

func (s *Service) databaseCount() int {
	databases, err := s.KeptDatabases()
	if err != nil {
		return 0
	}
	return len(databases)
}
