package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// MaxSessions is how many sessions are listed.
const MaxSessions = 1000

// maxQuery is how much of a session's statement is shown, in characters.
const maxQuery = 2000

// Session is a tenant's session.
type Session struct {
	SessionID
	User, Application string
	Database          string
	Address           string // of the client
	Port              int32  // of the client, 0 if that is not known
	State             string // such as "idle in transaction"
	StartedAt         time.Time
	StateSince        *time.Time // nil for a session that has just begun
	TransactionSince  *time.Time // nil outside a transaction
	WaitType, Wait    string     // what it waits for, "" for nothing
	Query             string     // the current statement, or the last one
}

// SessionID names a session. Another session of the same process id began at another
// time.
type SessionID struct {
	PID     int32
	Started int64 // in microseconds since 1970
}

// ErrNoSession means that a session has ended, or is not a tenant's.
var ErrNoSession = errors.New("there is no such session")

// String returns the id in text form, such as "4711-1763900000000000".
func (id SessionID) String() string { return fmt.Sprintf("%d-%d", id.PID, id.Started) }

// ParseSessionID parses an id in text form.
func ParseSessionID(text string) (id SessionID, err error) {
	process, started, _ := strings.Cut(text, "-")
	pid, err := strconv.ParseInt(process, 10, 32)
	if err == nil {
		id.PID = int32(pid)
		id.Started, err = strconv.ParseInt(started, 10, 64)
	}
	if err != nil || id.String() != text {
		return SessionID{}, ErrNoSession
	}
	return id, nil
}

// ofTenants selects the sessions of tenants, in whatever database, from pg_stat_activity;
// $1 are the appliance's roles.
const ofTenants = "backend_type in ('client backend', 'walsender') and usename <> all($1)"

// readableQuery is the beginning, of $2 characters, of a session's statement. One in a database of another encoding is
// left out: it need not be text in this one.
const readableQuery = `case when (select encoding from pg_database where oid = datid) = pg_char_to_encoding(getdatabaseencoding())
	then left(coalesce(query, ''), $2) else '' end`

const startedMicroseconds = "(extract(epoch from backend_start) * 1000000)::bigint"

// Sessions returns the tenants' sessions, the oldest first, at most [MaxSessions]. conn is the superuser's, in the database postgres.
func Sessions(ctx context.Context, conn *pgx.Conn) ([]Session, error) {
	rows, _ := conn.Query(ctx, `select pid, `+startedMicroseconds+`, usename::text, datname::text, coalesce(application_name, ''), coalesce(host(client_addr), ''), coalesce(client_port, 0),
		coalesce(state, ''), backend_start, state_change, xact_start, coalesce(wait_event_type, ''), coalesce(wait_event, ''), `+readableQuery+`
		from pg_stat_activity where `+ofTenants+` order by backend_start, pid limit $3`, ownRoles(), maxQuery, MaxSessions)
	sessions, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s Session, err error) {
		return s, row.Scan(&s.PID, &s.Started, &s.User, &s.Database, &s.Application, &s.Address, &s.Port,
			&s.State, &s.StartedAt, &s.StateSince, &s.TransactionSince, &s.WaitType, &s.Wait, &s.Query)
	})
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	return sessions, nil
}

// sessionPatience is how long TerminateSession waits for the end of the session.
const sessionPatience = 2 * time.Second

// CancelSession cancels what a tenant's session executes, if anything. conn is the
// superuser's, in the database postgres.
func CancelSession(ctx context.Context, conn *pgx.Conn, id SessionID) error {
	_, err := signalSession(ctx, conn, id, "pg_cancel_backend(pid)")
	return err
}

// TerminateSession ends a tenant's session and reports whether it has ended: one deep
// in C code may not end for hours. conn is the superuser's, in the database postgres.
func TerminateSession(ctx context.Context, conn *pgx.Conn, id SessionID) (ended bool, err error) {
	return signalSession(ctx, conn, id, fmt.Sprintf("pg_terminate_backend(pid, %d)", sessionPatience.Milliseconds()))
}

// signalSession finds the session and signals it in one statement.
func signalSession(ctx context.Context, conn *pgx.Conn, id SessionID, signal string) (done bool, err error) {
	err = conn.QueryRow(ctx, "select "+signal+" from pg_stat_activity where "+ofTenants+" and pid = $2 and "+startedMicroseconds+" = $3",
		ownRoles(), id.PID, id.Started).Scan(&done)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, ErrNoSession
	}
	if err != nil {
		return false, fmt.Errorf("signal session: %w", err)
	}
	return done, nil
}
