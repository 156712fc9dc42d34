package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// MaxDatabases is how many databases [Databases] lists. There are more than [MaxBeside] when clients create them in a burst, or
// while no appliance counts them.
const MaxDatabases = 4 * MaxBeside

// maxName is the longest name of PostgreSQL, in bytes. The server cuts a longer one and takes it for another.
const maxName = 63

var (
	// ErrNoDatabase means that a server has no database of a name, or one that clients must not use.
	ErrNoDatabase = errors.New("there is no such database")
	// ErrDatabaseClosed means that the owner of a database lets no session begin in it, or none but the superuser's.
	ErrDatabaseClosed = errors.New("the database is closed to all sessions")
)

// Database is a database of an instance: the tenant's, or one that roles have made beside it.
type Database struct {
	Main      bool   // it is the tenant's
	Name      string // in the bytes of its maker's encoding: not always UTF-8
	SizeBytes int64
	Encoding  string // such as "UTF8"
	Closed    bool   // its owner lets no session begin in it (ALLOW_CONNECTIONS false)
}

// Databases returns the tenant's database, whose name is given, and then those beside it by name, at most [MaxDatabases] in all.
// One whose DROP was interrupted is left out. conn is the superuser's, in the database postgres.
func Databases(ctx context.Context, conn *pgx.Conn, tenants string) ([]Database, error) {
	rows, _ := conn.Query(ctx, `select datname = $1::text, datname::text, coalesce(pg_database_size(oid), 0), pg_encoding_to_char(encoding)::text, not datallowconn
		from pg_database where `+tenantMade+` and not `+invalidated+` order by datname <> $1::text, datname limit $2`, tenants, MaxDatabases)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Database])
	if err != nil {
		return nil, fmt.Errorf("list databases: %w", err)
	}
	return found, nil
}

// AbsentDatabases returns those of the names that no database has which clients may use. conn is as for [Databases].
func AbsentDatabases(ctx context.Context, conn *pgx.Conn, names []string) ([]string, error) {
	absent, err := namesIn(ctx, conn, `select n from unnest($1::text[]) n
		where not exists (select from pg_database where datname = n and `+tenantMade+` and not `+invalidated+`)`, names)
	if err != nil {
		return nil, fmt.Errorf("look for databases: %w", err)
	}
	return absent, nil
}

// AdmitDumper lets the dumper connect to the database, also if its owner has revoked that from PUBLIC. It returns [ErrNoDatabase],
// or [ErrDatabaseClosed]. conn is as for [Databases]; its lock_timeout bounds the wait for a transaction that changes the database.
func AdmitDumper(ctx context.Context, conn *pgx.Conn, name string) error {
	if !mayBeDatabase(name) {
		return ErrNoDatabase
	}
	var open, admitted bool
	err := conn.QueryRow(ctx, `select datallowconn and datconnlimit <> 0, has_database_privilege('`+dumper+`', oid, 'CONNECT')
		from pg_database where datname = $1::text and not `+invalidated, name).Scan(&open, &admitted)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return ErrNoDatabase
	case err == nil && !open:
		return ErrDatabaseClosed
	case err == nil && !admitted:
		_, err = conn.Exec(ctx, "GRANT CONNECT ON DATABASE "+quoteName(name)+" TO "+dumper)
	}
	if err != nil {
		return fmt.Errorf("let the dumper connect: %w", err)
	}
	return nil
}

// ConnectTo is [Supervisor.Connect] for a database that a client names. It returns [ErrNoDatabase] or [ErrDatabaseClosed].
func (s *Supervisor) ConnectTo(ctx context.Context, id, name string) (*pgx.Conn, error) {
	if !mayBeDatabase(name) {
		return nil, ErrNoDatabase
	}
	conn, err := s.Connect(ctx, id, name)
	pg, refused := errors.AsType[*pgconn.PgError](err)
	switch {
	case refused && pg.Code == "3D000": // invalid_catalog_name
		return nil, ErrNoDatabase
	case isClosed(err):
		return nil, ErrDatabaseClosed
	}
	return conn, err
}

// mayBeDatabase reports whether a database that clients may use can have this name.
func mayBeDatabase(name string) bool {
	return name != "" && len(name) <= maxName && utf8.ValidString(name) && !strings.ContainsRune(name, 0) && name != "postgres" && !slices.Contains(Templates(), name)
}

// IsNotUTF8 reports whether a session of the appliance could not be sent a text of a database in another encoding.
func IsNotUTF8(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (pg.Code == "22021" || pg.Code == "22P05") // character_not_in_repertoire, untranslatable_character
}
