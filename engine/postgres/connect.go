package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// connectTimeout bounds one attempt to connect to a socket of this machine.
const connectTimeout = 5 * time.Second

// superuserConfig returns the configuration of a connection as [Superuser] over
// the private socket.
func superuserConfig(socketDir string, port int, database string) (*pgx.ConnConfig, error) {
	// Everything is explicit: pgx takes missing values from PG* variables.
	config, err := pgx.ParseConfig("sslmode=disable target_session_attrs=any passfile=/dev/null user=" + Superuser)
	if err != nil {
		return nil, err
	}
	config.Host, config.Port, config.Database = socketDir, uint16(port), database
	config.Password, config.Fallbacks = "", nil
	config.ConnectTimeout = connectTimeout
	config.RuntimeParams = sessionSettings()
	config.StatementCacheCapacity, config.DescriptionCacheCapacity = 0, 0
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	return config, nil
}

// sessionSettings returns the settings that are sent at the start of every
// session. They override what an owner has set with ALTER DATABASE ... SET: no
// search path may lead the superuser to a tenant's function, and no tenant's
// timeout may end its session. Its statements are not logged, because some
// contain password verifiers.
func sessionSettings() map[string]string {
	return map[string]string{
		"application_name":                    "holdfast",
		"client_encoding":                     "UTF8",
		"search_path":                         "pg_catalog",
		"role":                                "none",
		"row_security":                        "on",
		"default_transaction_read_only":       "off",
		"default_transaction_isolation":       "read committed",
		"statement_timeout":                   "0",
		"lock_timeout":                        "0",
		"idle_in_transaction_session_timeout": "0",
		"idle_session_timeout":                "0",
		"datestyle":                           "ISO",
		"timezone":                            "GMT", // which needs no files of time zones, unlike UTC
		"log_statement":                       "none",
		"log_min_duration_statement":          "-1",
		"log_min_error_statement":             "panic",
		"standard_conforming_strings":         "on",
	}
}

// slotTimeout is how long a connection attempt waits while all of the server's
// connection slots are taken. Every client that reaches the port takes a slot,
// even one reserved for superusers, until it is refused.
const slotTimeout = 12 * time.Second

// locker begins a lockout, or returns nil if none can begin now. The locker
// itself is nil for a server that no client can reach.
type locker func() (*lockout, error)

// session is a connection to a server.
type session interface{ Close(context.Context) error }

// openWhenFree calls open until the server has a free slot for the connection,
// for slotTimeout at most. After lockoutAfter it frees slots by a lockout. It
// returns the server's error, even if ctx ended the wait. With an error, no
// connection is left open.
func openWhenFree[C session](ctx context.Context, begin locker, open func() (C, error)) (conn C, err error) {
	const longest = 100 * time.Millisecond
	began, delay := time.Now(), 5*time.Millisecond
	var s *lockout
	defer func() {
		if s == nil {
			return
		}
		endErr, opened := s.end(), err == nil
		err = errors.Join(err, endErr)
		if opened && endErr != nil {
			_ = conn.Close(context.WithoutCancel(ctx)) // the error says why
			conn = *new(C)
		}
	}()
	conn, err = open()
	for refused := err; IsFull(err) && time.Since(began) < slotTimeout; delay = min(2*delay, longest) {
		if sleep(ctx, delay) != nil {
			break
		}
		if s == nil && begin != nil && time.Since(began) > lockoutAfter {
			if s, err = begin(); err != nil {
				return conn, errors.Join(refused, err)
			}
		}
		if s != nil {
			if err := s.lockOutIncomplete(); err != nil {
				return conn, errors.Join(refused, err)
			}
		}
		if conn, err = open(); err != nil && ctx.Err() != nil {
			return conn, refused
		}
	}
	return conn, err
}

// openSession is pgx.ConnectConfig to the server of the data directory dir, and to no other: see [ownsSocket]. A
// tenant can block the start of every session of its database with a lock on a
// catalog. openSession also ends an abandoned session in the server, where it
// would keep waiting in its slot.
func openSession(ctx context.Context, dir string, config *pgx.ConnConfig) (*pgx.Conn, error) {
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil && (pgconn.Timeout(err) || ctx.Err() != nil) {
		for _, pid := range processesOf(dir) {
			if isBlocked(pid, config.User, config.Database) {
				_ = syscall.Kill(pid, syscall.SIGTERM) // an error means that it has ended
			}
		}
	}
	if err == nil && !ownsSocket(dir, int(config.Port)) {
		_ = conn.Close(context.WithoutCancel(ctx))
		return nil, errNotServed
	}
	return conn, err
}

// errNotServed means that no postmaster serves the data directory on the expected port.
var errNotServed = errors.New("the server has ended")

// ownsSocket reports whether the postmaster of dir runs and has the socket of that port. The port of a server that has
// ended may soon be another one's, and the socket with it. No server takes it from one that runs: if ownsSocket is true
// after a session began, the session is in that server.
func ownsSocket(dir string, port int) bool {
	file, served := servedBy(dir)
	return served && file.port == port
}

// connect opens a session as [Superuser].
func connect(ctx context.Context, spec Spec, begin locker, database string) (*pgx.Conn, error) {
	config, err := superuserConfig(spec.Config.SocketDir, spec.Config.Port, database)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	conn, err := openWhenFree(ctx, begin, func() (*pgx.Conn, error) { return openSession(ctx, spec.Dir, config) })
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return conn, nil
}

// connectAs opens a session as the role that the rules let the appliance use. The
// session has no more rights than that role.
func connectAs(ctx context.Context, spec Spec, begin locker, database, role string) (*pgx.Conn, error) {
	config, err := superuserConfig(spec.Config.SocketDir, spec.Config.Port, database)
	if err != nil {
		return nil, fmt.Errorf("connect as %s: %w", role, err)
	}
	config.User = role
	for _, superusers := range []string{"log_statement", "log_min_duration_statement", "log_min_error_statement"} {
		delete(config.RuntimeParams, superusers)
	}
	conn, err := openWhenFree(ctx, begin, func() (*pgx.Conn, error) { return openSession(ctx, spec.Dir, config) })
	if err != nil {
		return nil, fmt.Errorf("connect as %s: %w", role, err)
	}
	return conn, nil
}

// ServerVersion returns the version of a session's server, in the form of
// [binaries.Set.Version].
func ServerVersion(conn *pgx.Conn) string {
	version, _, _ := strings.Cut(conn.PgConn().ParameterStatus("server_version"), " ")
	return version
}
