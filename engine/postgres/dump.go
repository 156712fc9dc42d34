package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// dumper is the role that pg_dump logs in as, over the private socket. A dump's
// session may execute what the tenant has made, so its role may read everything
// in the tenant's database, whatever row-level security says, and has no other
// rights. The superuser's session could be tricked into running the tenant's
// functions (CVE-2024-7348), and tables that force row-level security on their
// owner refuse the owner's session.
const dumper = "holdfast_dump"

// dumperRole returns the statements that create and configure the dumper. The
// role's settings override those that the owner has set on the database.
func dumperRole(database string) []string {
	return []string{
		`DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '` + dumper + `') THEN
			CREATE ROLE ` + dumper + `; END IF; END $$`,
		"ALTER ROLE " + dumper + " LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION BYPASSRLS INHERIT PASSWORD NULL",
		"GRANT pg_read_all_data TO " + dumper,
		"GRANT CONNECT ON DATABASE " + quoteName(database) + " TO " + dumper,
		// From PostgreSQL 16 on, a dump can begin while tenants' sessions fill all
		// other slots.
		`DO $$ BEGIN IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'pg_use_reserved_connections') THEN
			GRANT pg_use_reserved_connections TO ` + dumper + `; END IF; END $$`,
		// pg_read_all_data does not include large objects.
		"ALTER ROLE " + dumper + " SET lo_compat_privileges = on",
		`DO $$ DECLARE s text; BEGIN
			FOR s IN SELECT name FROM pg_settings WHERE name IN ('statement_timeout', 'lock_timeout', 'idle_session_timeout',
				'idle_in_transaction_session_timeout', 'transaction_timeout', 'local_preload_libraries')
			LOOP
				EXECUTE format('ALTER ROLE ` + dumper + ` SET %I FROM CURRENT', s);
			END LOOP; END $$`,
	}
}

// Dump writes a consistent snapshot of the instance's database to w, in pg_dump's
// custom format. The compression is gzip level 1, which every pg_restore reads
// and which takes a third less time than the default. tool is a pg_dump at least
// as new as the server; it runs at the priority of the warm pool. lockWait bounds
// how long the dump waits for a session that holds a lock. The error contains
// pg_dump's output.
func (s *Supervisor) Dump(ctx context.Context, id, tool, database string, lockWait time.Duration, w io.Writer) error {
	return s.act(id, "dump", func(i *instance) error {
		return dump(ctx, i.specification(), tool, database, lockWait, w, "--format=custom", "--compress=1")
	})
}

// DumpSchema is Dump of the schema only, as SQL.
func (s *Supervisor) DumpSchema(ctx context.Context, id, tool, database string, lockWait time.Duration, w io.Writer) error {
	return s.act(id, "dump", func(i *instance) error {
		return dump(ctx, i.specification(), tool, database, lockWait, w, "--schema-only")
	})
}

func dump(ctx context.Context, spec Spec, tool, database string, lockWait time.Duration, w io.Writer, options ...string) error {
	if !ownsSocket(spec.Dir, spec.Config.Port) {
		return errNotServed
	}
	ctx, end := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	var looking sync.Mutex
	go func() {
		defer close(watched)
		watchDump(ctx, spec, lockWait, &looking, end)
	}()
	defer func() { end(nil); <-watched }()
	options = append(options, "--no-password", "--lock-wait-timeout="+strconv.FormatInt(lockWait.Milliseconds(), 10))
	if err := runDump(ctx, spec, tool, database, lockWait, w, options); err != nil {
		looking.Lock() // if the watcher ended the dump, it is about to set the cause
		defer looking.Unlock()
		return errors.Join(context.Cause(ctx), fmt.Errorf("pg_dump: %w", err))
	}
	if !ownsSocket(spec.Dir, spec.Config.Port) {
		return errNotServed // what was dumped may be another's
	}
	return nil
}

// runDump runs pg_dump. Where the server has no free slot for it, it tries again, for slotTimeout: sessions that have ended, or are
// being refused, hold one for a moment. What pg_dump writes begins after it has its only session.
func runDump(ctx context.Context, spec Spec, tool, database string, lockWait time.Duration, w io.Writer, options []string) error {
	for began := time.Now(); ; {
		cmd := exec.CommandContext(ctx, tool, options...)
		cmd.Dir = "/"
		cmd.Env = append(spec.Bin.Env(),
			"PGHOST="+spec.Config.SocketDir, "PGPORT="+strconv.Itoa(spec.Config.Port),
			"PGDATABASE="+database, "PGUSER="+dumper, "PGAPPNAME=holdfast export", "PGPASSFILE=/nonexistent",
			// For a server that neither answers nor accepts a session to inspect it.
			"PGCONNECT_TIMEOUT="+strconv.Itoa(2*int(max(lockWait, dumpWatch).Seconds())),
			"PGOPTIONS=-c search_path=pg_catalog -c role=none")
		run := newToolCommand(cmd)
		cmd.Stdout = w
		err := runNice(run, buildNice)
		if err == nil || !saysFull(err) || time.Since(began) > slotTimeout || sleep(ctx, dumpPause) != nil {
			return err
		}
	}
}

// dumpPause is how long a dump waits for a free slot before it tries again.
const dumpPause = 200 * time.Millisecond

// saysFull reports whether pg_dump was refused because the server had no free connection slot. What it says later has names of tenants.
func saysFull(err error) bool {
	for line := range strings.Lines(err.Error()) {
		if _, refusal, ok := strings.Cut(line, "pg_dump: error: connection to server on socket "); ok {
			return strings.Contains(refusal, "connection slots are reserved") || strings.Contains(refusal, "too many clients already")
		}
	}
	return false
}

// errLocked means that a dump waited too long for a lock.
var errLocked = errors.New("another session has held a lock that the dump needs for too long")

// watchDump ends a dump that waits for one lock for longer than lockWait.
// --lock-wait-timeout bounds only the wait for tables, and pg_dump disables the
// timeouts that bound other waits, such as a view's. While the dumper has no
// session, a session that waits at its start counts as the dumper's, because the
// two cannot be told apart: a lock on pg_class blocks the start of every session.
// The server process is ended first: while it waits, it does not notice that
// pg_dump has ended. watchDump returns when ctx ends, and holds looking while it
// checks.
func watchDump(ctx context.Context, spec Spec, lockWait time.Duration, looking *sync.Mutex, end func(error)) {
	for sleep(ctx, min(lockWait, dumpWatch)) == nil {
		looking.Lock()
		if ended, err := endBlockedDump(ctx, spec, lockWait); err == nil && ended { // on an error the next tick retries
			end(errLocked)
		}
		looking.Unlock()
	}
}

func endBlockedDump(ctx context.Context, spec Spec, lockWait time.Duration) (ended bool, err error) {
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

// dumpWatch is how often a dump is checked, and how long a check may take.
const dumpWatch = 15 * time.Second
