package importer

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/model"
)

// Session is a source that was reached and let its user in. It holds the
// snapshot of which everything is copied.
type Session struct {
	Version string // of the source's server
	Major   int

	source   Source
	account  *Account
	conn     *pgx.Conn
	number   int // server_version_num
	snapshot string
	traits   traits

	missing   []string // extensions that are not available here
	inventory inventory
}

// traits are what is asked of the source before anything else.
type traits struct {
	encoding, collate string
	size              int64 // bytes of the database's files
}

// Open connects to the source. The error, if any, is for the person who gave
// it. The caller closes the session.
func Open(ctx context.Context, source Source, account *Account) (*Session, error) {
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
		s.Version, source.address(), source.Database, megabytes(s.traits.size), s.traits.encoding))
	return s, nil
}

func (s *Session) look(ctx context.Context) error {
	err := s.conn.QueryRow(ctx, `select current_setting('server_version'), current_setting('server_version_num')::int,
		pg_encoding_to_char(encoding)::text, datcollate::text, pg_database_size(oid)
		from pg_database where datname = current_database()`).Scan(&s.Version, &s.number, &s.traits.encoding, &s.traits.collate, &s.traits.size)
	s.Version, _, _ = strings.Cut(oneLine(s.Version), " ") // Debian adds its package's version
	s.Major = s.number / 10000
	return err
}

// Close ends the session, and the snapshot with it.
func (s *Session) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	_ = s.conn.Close(ctx)
}

// freeze begins the transaction whose snapshot everything is copied of.
func (s *Session) freeze(ctx context.Context) error {
	if _, err := s.conn.Exec(ctx, "begin transaction isolation level repeatable read, read only"); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	if err := s.conn.QueryRow(ctx, "select pg_export_snapshot()").Scan(&s.snapshot); err != nil {
		return fmt.Errorf("export snapshot: %w", err)
	}
	if strings.ContainsAny(s.snapshot, "'\\\x00") || len(s.snapshot) > 100 || strings.HasPrefix(s.snapshot, "-") {
		return fmt.Errorf("export snapshot: the source answered no name of one")
	}
	return nil
}

// hold keeps the tables from being altered or dropped until the copy is done.
func (s *Session) hold(ctx context.Context, tables []table) error {
	const together = 500
	for first := 0; first < len(tables); first += together {
		var names []string
		for _, t := range tables[first:min(first+together, len(tables))] {
			names = append(names, "only "+t.sanitized())
		}
		if _, err := s.conn.Exec(ctx, "lock table "+strings.Join(names, ", ")+" in access share mode"); err != nil {
			return fmt.Errorf("lock tables of the source: %w", err)
		}
	}
	return nil
}

// reader opens another session in the same snapshot.
func (s *Session) reader(ctx context.Context) (*pgx.Conn, error) {
	conn, err := s.source.connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.join(ctx, conn); err != nil {
		_ = conn.Close(context.WithoutCancel(ctx))
		return nil, sourceError{err}
	}
	return conn, nil
}

// join begins a transaction in the snapshot, after rolling back an earlier one.
func (s *Session) join(ctx context.Context, conn *pgx.Conn) error {
	if conn.PgConn().TxStatus() != 'I' {
		if _, err := conn.Exec(ctx, "rollback"); err != nil {
			return fmt.Errorf("roll back: %w", err)
		}
	}
	if _, err := conn.PgConn().Exec(ctx, "begin transaction isolation level repeatable read, read only; set transaction snapshot '"+s.snapshot+"'").ReadAll(); err != nil {
		return fmt.Errorf("join snapshot: %w", err)
	}
	return nil
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }
