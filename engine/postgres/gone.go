package postgres

import (
	"errors"
	"io"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
)

// endedError means that a postmaster ended before it accepted connections.
type endedError struct {
	reason string
	killed bool // by an external signal
}

// Error implements error.
func (e endedError) Error() string { return e.reason }

// sqlstateShutdown is the prefix of the SQLSTATEs of a server that is shutting
// down or not yet up: admin_shutdown, crash_shutdown, cannot_connect_now.
const sqlstateShutdown = "57P0"

const (
	sqlstateNotUp = "57P03" // cannot_connect_now: of a server that starts, recovers or shuts down
	sqlstateFull  = "53300" // too_many_connections
)

// isRefusal reports whether err is the server's error with that SQLSTATE.
func isRefusal(err error, sqlstate string) bool {
	refusal, ok := errors.AsType[*pgconn.PgError](err)
	return ok && refusal.Code == sqlstate
}

// IsFull reports whether err means that the server had no free connection slot.
func IsFull(err error) bool { return isRefusal(err, sqlstateFull) }

// IsGone reports whether err means that the server ended during a request: it was
// killed, has crashed, or is not up again yet. The request may have taken effect.
func IsGone(err error) bool {
	if ended, ok := errors.AsType[endedError](err); ok {
		return ended.killed
	}
	if refusal, ok := errors.AsType[*pgconn.PgError](err); ok {
		return strings.HasPrefix(refusal.Code, sqlstateShutdown)
	}
	if _, unreached := errors.AsType[*pgconn.ConnectError](err); unreached || pgconn.SafeToRetry(err) && !pgconn.Timeout(err) {
		return true
	}
	for _, broken := range []error{errNotServed, io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, broken) {
			return true
		}
	}
	return false
}
