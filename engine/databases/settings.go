package databases

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// The shared buffers of all instances together take at most 1/bufferShare of the
// machine's memory, divided among at least leastSharing instances.
const (
	bufferShare  = 4 // a quarter
	leastSharing = 8
)

// settings returns a database's settings: defaults fitted to the machine,
// overridden by those that clients changed, and those by the operator's. PostgreSQL allocates the pages of shared
// buffers when it first fills them, but writes their descriptors at startup, about
// 1 MB for each 64 MB. So an idle database stays small only if its buffers are
// small.
func (s *Service) settings(db model.Database) map[string]string {
	settings := map[string]string{}
	if host, err := core.MeasureHost(s.core.Config.DataDir); err == nil && host.MemoryTotal != nil {
		settings = fitSettings(*host.MemoryTotal, host.DiskFree, s.databaseCount())
		settings[connectionsSetting] = fitConnections(*host.MemoryTotal)
	}
	if s.core.Config.SandboxSuperuser {
		settings["max_prepared_transactions"] = sandboxPrepared
	}
	if db.LogicalReplication || s.hasSlots(db) {
		maps.Copy(settings, s.replicationSettings())
	}
	if db.Following {
		maps.Copy(settings, postgres.FollowSettings())
	}
	maps.Copy(settings, db.OwnSettings)
	maps.Copy(settings, db.Settings)
	if s.core.ReadOnly() != nil {
		settings[readOnlySetting] = "on"
	}
	return settings
}

// fitSettings divides a machine's memory, in bytes, among its databases. It limits
// the temporary files of one process to a quarter of the free space, at least 1 GB
// and at most 1 TB.
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

// sandboxPrepared is how many transactions can be prepared in a private appliance. Its users, who are superusers, test
// two-phase commits there and cannot restart the server.
const sandboxPrepared = "20"

const connectionsSetting = "max_connections"

// fitConnections returns max_connections for a machine with so much memory, in bytes: one for each 72 MB, at least 50,
// and at most 105, of which the owner has 100.
func fitConnections(memory int64) string {
	return strconv.FormatInt(clamp(memory/(72<<20), 50, 105), 10)
}

// keepDefaults restores the defaults with which the instance in dir was started, if
// it may still be running. The number of databases may have changed since, and an
// instance whose settings differ would be restarted instead of adopted. The
// defaults are computed again at its next start.
func keepDefaults(settings map[string]string, db model.Database, dir string) {
	if core.Absent(dir, "postmaster.pid") { // it was shut down
		return
	}
	conf, err := os.ReadFile(filepath.Join(dir, "postgresql.conf"))
	if err != nil {
		return
	}
	fitted := fitSettings(0, 0, 0) // for the names
	if _, replicates := settings[slotLimit]; replicates {
		fitted[slotLimit] = ""
	}
	for line := range strings.Lines(string(conf)) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " = ")
		value = strings.Trim(value, "'")
		if setByPeople(db, name) {
			continue
		}
		if _, ours := fitted[name]; ours {
			settings[name] = value
		} else if places, err := strconv.Atoi(value); name == connectionsSetting && err == nil && places > loginSlots {
			settings[name] = strconv.Itoa(places - loginSlots)
		}
	}
}

// setByPeople reports whether the operator or a client has set a setting, or had set
// it before a pending change.
func setByPeople(db model.Database, name string) bool {
	all := []map[string]string{db.Settings, db.OwnSettings}
	if p := db.PendingChange; p != nil {
		all = append(all, p.Settings, p.OwnSettings)
	}
	return slices.ContainsFunc(all, func(set map[string]string) bool { _, is := set[name]; return is })
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
