package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// dumper is the role that pg_dump logs in as, over the private socket. A dump
// runs in a session with what the tenant has made; so its role may read
// everything of the tenant's database, whatever row-level security says, and
// do nothing else anywhere. The superuser's session could be led into running
// the tenant's functions (CVE-2024-7348), and the owner's own is refused by
// tables that force row-level security on their owner.
const dumper = "holdfast_dump"

// dumperRole are the statements that make the dumper what it should be. What
// the role sets overrides what the owner has set on the database.
func dumperRole(database string) []string {
	return []string{
		`DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '` + dumper + `') THEN
			CREATE ROLE ` + dumper + `; END IF; END $$`,
		"ALTER ROLE " + dumper + " LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION BYPASSRLS INHERIT PASSWORD NULL",
		"GRANT pg_read_all_data TO " + dumper,
		"GRANT CONNECT ON DATABASE " + quoteName(database) + " TO " + dumper,
		// From PostgreSQL 16 on: a dump begins though the tenants' sessions fill the rest.
		`DO $$ BEGIN IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'pg_use_reserved_connections') THEN
			GRANT pg_use_reserved_connections TO ` + dumper + `; END IF; END $$`,
		// Large objects have no pg_read_all_data.
		"ALTER ROLE " + dumper + " SET lo_compat_privileges = on",
		`DO $$ DECLARE s text; BEGIN
			FOR s IN SELECT name FROM pg_settings WHERE name IN ('statement_timeout', 'lock_timeout', 'idle_session_timeout',
				'idle_in_transaction_session_timeout', 'transaction_timeout', 'local_preload_libraries')
			LOOP
				EXECUTE format('ALTER ROLE ` + dumper + ` SET %I FROM CURRENT', s);
			END LOOP; END $$`,
	}
}

// Dump writes what is in the instance's database to w, in pg_dump's custom
// format, as it is at one moment. Compression is level 1 of gzip, which every
// pg_restore reads, and which takes a third less time than the default. tool is a pg_dump at least as new as the
// server; it runs at the priority of the warm pool. The error holds its output.
// lockWait bounds how long it waits for what a session holds.
func (s *Supervisor) Dump(ctx context.Context, id, tool, database string, lockWait time.Duration, w io.Writer) error {
	return s.act(id, "dump", func(i *instance) error { return dump(ctx, i.specification(), tool, database, lockWait, w) })
}

func dump(ctx context.Context, spec Spec, tool, database string, lockWait time.Duration, w io.Writer) error {
	ctx, end := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	var looking sync.Mutex
	go func() {
		defer close(watched)
		watchDump(ctx, spec, lockWait, &looking, end)
	}()
	defer func() { end(nil); <-watched }()
	cmd := exec.CommandContext(ctx, tool, "--format=custom", "--compress=1", "--no-password",
		"--lock-wait-timeout="+strconv.FormatInt(lockWait.Milliseconds(), 10))
	cmd.Dir = "/"
	cmd.Env = append(spec.Bin.Env(),
		"PGHOST="+spec.Config.SocketDir, "PGPORT="+strconv.Itoa(spec.Config.Port),
		"PGDATABASE="+database, "PGUSER="+dumper, "PGAPPNAME=holdfast export", "PGPASSFILE=/nonexistent",
		// For a server that neither answers nor accepts a session to inspect it.
		"PGCONNECT_TIMEOUT="+strconv.Itoa(2*int(max(lockWait, dumpWatch).Seconds())),
		"PGOPTIONS=-c search_path=pg_catalog -c role=none")
	run := newToolCommand(cmd)
	cmd.Stdout = w
	if err := runNice(run, buildNice); err != nil {
		looking.Lock() // the watcher, if it ended the dump, is about to set the cause
		defer looking.Unlock()
		return errors.Join(context.Cause(ctx), fmt.Errorf("pg_dump: %w", err))
	}
	return nil
}

// errLocked says that a dump waited for longer than it may.
var errLocked = errors.New("another session has held a lock that the dump needs for too long")

// watchDump ends a dump that waits for one lock for longer than lockWait:
// --lock-wait-timeout bounds the wait for tables alone, and pg_dump switches off
// what bounds others, a view's for one. As long as the dumper has no session, one that
// waits at its start counts as the dumper's, because they cannot be told apart: a lock
// on pg_class keeps every session from starting. The server process is ended first:
// while it waits it does not notice that pg_dump has ended. It returns when ctx ends,
// and holds looking while it checks.
func watchDump(ctx context.Context, spec Spec, lockWait time.Duration, looking *sync.Mutex, end func(error)) {
	for pause(ctx, min(lockWait, dumpWatch)) == nil {
		looking.Lock()
		if ended, err := endHeldUpDump(ctx, spec, lockWait); err == nil && ended { // what cannot be asked now is asked again
			end(errLocked)
		}
		looking.Unlock()
	}
}

func endHeldUpDump(ctx context.Context, spec Spec, lockWait time.Duration) (ended bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, dumpWatch)
	defer cancel()
	err = inDatabase(ctx, spec, "postgres", func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, `select count(pg_terminate_backend(pid)) > 0
			from pg_locks l left join pg_stat_activity a using (pid)
			where l.waitstart < clock_timestamp() - make_interval(secs => $2) and (a.usename = $1 or a.usesysid is null
				and coalesce(a.backend_type, 'client backend') = 'client backend'
				and not exists (select from pg_stat_activity where usename = $1))`,
			dumper, lockWait.Seconds()).Scan(&ended)
	})
	return ended, err
}

// dumpWatch is how often a dump is looked at, and how long that may take.
const dumpWatch = 15 * time.Second
