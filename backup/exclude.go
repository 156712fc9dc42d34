package backup

import (
	"path"
	"strings"
)

// emptied are the directories whose contents PostgreSQL makes anew, or takes
// from the WAL archive (pg_wal), and that must exist. As in PostgreSQL's
// backup/basebackup.c; but for the server's log, which is no part of the
// database, and holds what failed statements held.
var emptied = map[string]bool{
	"pg_wal": true, "pg_replslot": true, "pg_dynshmem": true, "pg_notify": true, "pg_serial": true,
	"pg_snapshots": true, "pg_stat_tmp": true, "pg_subtrans": true, "log": true,
}

// leftOut are the files of the data directory's top that belong to the running
// server, or to another backup. The certificate is among them: whoever restores
// makes another, and who has the backups is not to pass for the server.
var leftOut = map[string]bool{
	"postmaster.pid": true, "postmaster.opts": true, "postgresql.auto.conf.tmp": true, "current_logfiles.tmp": true,
	"backup_label": true, "tablespace_map": true, "backup_manifest": true, "backup_label.old": true, "tablespace_map.old": true,
	"standby.signal": true, "recovery.signal": true, "server.crt": true, "server.key": true,
}

// isLeftOut reports whether no backup holds the file or directory.
func isLeftOut(name string) bool {
	base := path.Base(name)
	return leftOut[name] || strings.HasPrefix(base, "pgsql_tmp") || strings.HasPrefix(base, "pg_internal.init")
}
