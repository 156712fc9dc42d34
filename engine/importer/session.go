package importer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"holdfast/engine/model"
)

// Session is an authenticated connection to the source. It holds the snapshot that everything is copied from.
type Session struct {
	Version string // of the source's server
	Major   int

	source   Source
	account  *Account
	conn     *pgx.Conn
	number   int // server_version_num
	snapshot string
	encoding string
	size     int64 // bytes of the database's files

	follow *following // nil if the import ends with the copy

	missing   []string // extensions that are not available here
	inventory inventory
}

// Open connects to the source. Its error is written for the person who gave the source. The caller closes the session.
func Open(ctx context.Context, source Source, account *Account) (*Session, error) {
	source.refused = new(atomic.Pointer[model.Error])
	conn, err := source.connect(ctx)
	if err != nil {
		return nil, err
	}
	s := &Session{source: source, account: account, conn: conn}
	if err := s.look(ctx); err != nil {
		s.Close()
		return nil, source.explain(ctx, err)
	}
	account.change(func(record *model.Import) { record.Source.Version = s.Version })
	account.Say(model.ImportInfo, fmt.Sprintf("connected to PostgreSQL %s at %s, database %s of %s in %s",
		s.Version, source.address(), source.Database, megabytes(s.size), s.encoding))
	return s, nil
}

func (s *Session) look(ctx context.Context) error {
	if err := s.source.checkPooler(ctx, s.conn.PgConn()); err != nil {
		return err
	}
	if err := s.enter(ctx, s.conn); err != nil {
		return err
	}
	err := s.conn.QueryRow(ctx, `select current_setting('server_version'), current_setting('server_version_num')::int,
		pg_encoding_to_char(encoding)::text, pg_database_size(oid)
		from pg_database where datname = current_database()`).Scan(&s.Version, &s.number, &s.encoding, &s.size)
	s.Version, _, _ = strings.Cut(oneLine(s.Version), " ") // Debian appends its package's version
	s.Major = s.number / 10000
	return err
}

// Close ends the session and its snapshot.
func (s *Session) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	_ = s.conn.Close(ctx)
}

// freeze exports the snapshot, so that other sessions can import it.
func (s *Session) freeze(ctx context.Context) error {
	if s.follow != nil {
		if err := s.makeSlot(ctx); err != nil {
			return err
		}
	}
	if err := s.conn.QueryRow(ctx, "select pg_export_snapshot()").Scan(&s.snapshot); err != nil {
		return fmt.Errorf("export snapshot: %w", err)
	}
	return checkSnapshot(s.snapshot)
}

// checkSnapshot refuses what is no name of a snapshot.
func checkSnapshot(name string) error {
	if strings.ContainsAny(name, "'\\\x00") || len(name) > 100 || strings.HasPrefix(name, "-") {
		return errors.New("export snapshot: the source answered no name of one")
	}
	return nil
}

// hold keeps the tables from being altered or dropped until the copy is done. It fails with errAltered if one of them
// already was.
func (s *Session) hold(ctx context.Context, tables []table) error {
	const together = 500
	for part := range slices.Chunk(tables, together) {
		names, objects := make([]string, len(part)), make([]object, len(part))
		for i, t := range part {
			names[i], objects[i] = "only "+t.sanitized(), object{t.oid, t.sanitized()}
		}
		_, err := s.conn.Exec(ctx, "lock table "+strings.Join(names, ", ")+" in access share mode")
		if isGone(err) {
			return errors.Join(errAltered, err)
		}
		if err != nil {
			return fmt.Errorf("lock tables of the source: %w", err)
		}
		others, err := misnamed(ctx, s.conn, objects)
		if err != nil {
			return err
		}
		if len(others) > 0 {
			return errAltered
		}
	}
	return nil
}

// holdInterval is how often the session that holds the snapshot is checked.
const holdInterval = 10 * time.Second

// holding runs do while the session that holds the snapshot and the tables is idle, and cancels it if that session
// ends.
func (s *Session) holding(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		for over := false; !over; {
			select {
			case <-time.After(holdInterval):
			case <-done:
				over = true
			}
			if _, err := s.conn.Exec(ctx, "select 1"); err != nil {
				cancel(sourceError{fmt.Errorf("the session that holds the snapshot has ended: %w", err)})
				return
			}
		}
	})
	err := do(ctx)
	close(done)
	watch.Wait()
	if lost := context.Cause(ctx); lost != nil {
		err = lost
	}
	cancel(nil)
	return err
}

// another opens another session with the source and prepares it. It retries a refusal: the server may still count a
// session that has just ended.
func (s *Session) another(ctx context.Context, prepare func(context.Context, *pgx.Conn) error) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*dialTimeout)
	defer cancel()
	for tries := 0; ; tries++ {
		conn, err := s.source.connect(ctx)
		if err == nil {
			if err = prepare(ctx, conn); err == nil {
				return conn, nil
			}
			_ = conn.Close(context.WithoutCancel(ctx))
		}
		if _, refused := errors.AsType[*pgconn.PgError](err); !refused || tries == 10 {
			return nil, sourceError{err}
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return nil, sourceError{err}
		}
	}
}

// reader opens another session that sees the snapshot.
func (s *Session) reader(ctx context.Context) (*pgx.Conn, error) { return s.another(ctx, s.enter) }

// describer opens a session for pg_dump, which begins its transaction itself.
func (s *Session) describer(ctx context.Context) (*pgx.Conn, error) {
	return s.another(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		if err := conn.PgConn().Exec(ctx, setAll(false)).Close(); err != nil {
			return err
		}
		expect(conn, dumpBounds)
		return nil
	})
}

// sourceSettings apply to every session with the source: names resolve only in pg_catalog, values are written in a form
// that every server reads, and row security causes an error instead of hiding rows.
var sourceSettings = []string{
	"search_path = pg_catalog, pg_temp", "default_transaction_read_only = on", "statement_timeout = 0", "lock_timeout = '30s'",
	"idle_in_transaction_session_timeout = 0", "datestyle = iso", "intervalstyle = postgres", "extra_float_digits = 3",
	"synchronize_seqscans = off", "row_security = off", "bytea_output = hex", "xmloption = content", "lc_monetary = 'C'",
	"standard_conforming_strings = on", "client_min_messages = warning",
}

// newerSettings do not exist on every server: the first came with PostgreSQL 17; the second with 12.20, 13.16, 14.13,
// 15.8, 16.4 and 17. The second prevents the expansion of views and foreign tables that replaced something else.
const newerSettings = `('transaction_timeout', '0'), ('restrict_nonsystem_relation_kind', 'view, foreign-table')`

// setAll returns SQL that applies sourceSettings and newerSettings, to the session or only to the transaction.
func setAll(local bool) string {
	set := "set "
	if local {
		set = "set local "
	}
	return set + strings.Join(sourceSettings, "; "+set) +
		fmt.Sprintf("; select set_config(name, x.value, %t) from pg_settings join (values %s) x (setting_name, value) on setting_name = name", local, newerSettings)
}

// enter begins a transaction that imports the snapshot, after rolling back an earlier one; the first transaction takes
// the snapshot. It is read-only, and its settings end with it: a pooler may then lend the session to another client.
func (s *Session) enter(ctx context.Context, conn *pgx.Conn) error {
	if conn.PgConn().TxStatus() != 'I' {
		if _, err := conn.Exec(ctx, "rollback"); err != nil {
			return fmt.Errorf("roll back: %w", err)
		}
	}
	begin := "begin transaction isolation level repeatable read, read only, not deferrable; "
	if s.snapshot != "" {
		begin += "set transaction snapshot '" + s.snapshot + "'; "
	}
	if err := conn.PgConn().Exec(ctx, begin+setAll(true)).Close(); err != nil {
		return fmt.Errorf("enter snapshot: %w", err)
	}
	return nil
}

// enterNow begins a transaction that sees the present.
func (s *Session) enterNow(ctx context.Context, conn *pgx.Conn) error {
	if err := conn.PgConn().Exec(ctx, "begin transaction isolation level read committed, read only; "+setAll(true)).Close(); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	return nil
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }
