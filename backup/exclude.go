package backup

import (
	"path"
	"strings"
)

// emptied are directories that must exist, but whose contents PostgreSQL recreates or, for pg_wal, takes from the
// WAL archive. They are those of PostgreSQL's backup/basebackup.c plus the server log, which is not part of the
// database and may contain failed statements.
var emptied = map[string]bool{
	"pg_wal": true, "pg_replslot": true, "pg_dynshmem": true, "pg_notify": true, "pg_serial": true,
	"pg_snapshots": true, "pg_stat_tmp": true, "pg_subtrans": true, "log": true,
}

// excluded are files at the top of the data directory that belong to the running server or to another backup. They
// include the certificate: a restore creates another one, and a backup must not let its owner impersonate the
// server.
var excluded = map[string]bool{
	"postmaster.pid": true, "postmaster.opts": true, "postgresql.auto.conf.tmp": true, "current_logfiles.tmp": true,
	"backup_label": true, "tablespace_map": true, "backup_manifest": true, "backup_label.old": true, "tablespace_map.old": true,
	"standby.signal": true, "recovery.signal": true, "server.crt": true, "server.key": true,
}

// isExcluded reports whether backups exclude the file or directory.
func isExcluded(name string) bool {
	base := path.Base(name)
	return excluded[name] || strings.HasPrefix(base, "pgsql_tmp") || strings.HasPrefix(base, "pg_internal.init")
}
