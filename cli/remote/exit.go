package remote

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"holdfast/cli/client"
	"holdfast/server/api/wire"
)

// The exit codes, as newExitCodes documents them.
const (
	exitError       = 1
	exitUsage       = 2
	exitKey         = 3
	exitForbidden   = 4
	exitNotFound    = 5
	exitConflict    = 6
	exitRateLimited = 7
	exitUnreachable = 8
	exitFailed      = 9
	exitInterrupted = 130
)

func newExitCodes() *cobra.Command {
	return &cobra.Command{
		Use:   "exit-codes",
		Short: "What the exit codes mean",
		Args:  cobra.NoArgs,
		Long: `What the exit codes mean:

    0  done
    1  understood, and could not be done
    2  the command line, or what it asks for, makes no sense; nothing was changed
    3  there is no API key, or it is not valid
    4  the key may not do this, or nobody may now
    5  there is no such thing
    6  the name is taken, or another operation is under way
    7  too many requests: try again later
    8  the appliance cannot be reached
    9  what was waited for has failed: a backup, a restore, an import
  130  interrupted; what was begun on the appliance goes on there

` + "`holdfast run`" + ` ends with the exit code of its command: 122 when the database ended before the command, which was then
ended too, 125 when the command was not run because of what comes before, 126 when it cannot be executed, 127 when there is
none of that name, 128 and more when a signal ended it.`,
	}
}

// failure is an error with its exit code and a message that says what to do
// next.
type failure struct {
	code int
	text string
	err  error
}

// Error implements error.
func (f *failure) Error() string { return f.text }

// Unwrap returns the cause.
func (f *failure) Unwrap() error { return f.err }

// ExitCode returns the exit code of a command's error.
func ExitCode(err error) int {
	if f, ok := errors.AsType[*failure](err); ok {
		return f.code
	}
	if _, named := errors.AsType[*skippedName](err); named {
		return exitUsage
	}
	if errors.Is(err, context.Canceled) {
		return exitInterrupted
	}
	return exitError
}

func failf(code int, format string, args ...any) error {
	return &failure{code: code, text: fmt.Sprintf(format, args...)}
}

func usagef(format string, args ...any) error { return failf(exitUsage, format, args...) }

// explain converts a command's error to a failure.
func explain(err error, base string) error {
	if err == nil {
		return nil
	}
	if _, done := errors.AsType[*failure](err); done {
		return err
	}
	if refusal, ok := errors.AsType[*client.Error](err); ok {
		return &failure{RefusalCode(refusal.Code), explainRefusal(refusal, base), err}
	}
	switch _, carried := errors.AsType[*url.Error](err); {
	case errors.Is(err, context.Canceled):
		return &failure{exitInterrupted, "interrupted", err}
	case errors.Is(err, client.ErrNotAPI):
		return &failure{exitUnreachable, err.Error() + "; --url or HOLDFAST_URL must name the appliance's API", err}
	case errors.Is(err, client.ErrUnavailable):
		return &failure{exitUnreachable, err.Error(), err}
	case carried:
		return &failure{exitUnreachable, explainConnection(err, base), err}
	default:
		return err
	}
}

// explain is the function of that name, and adds how to find a refused request in the audit log.
func (t *task) explain(err error) error {
	explained := explain(err, t.connection.base)
	refusal, refused := errors.AsType[*client.Error](err)
	shown, plain := errors.AsType[*failure](explained)
	if !refused || !plain || t.json || refusal.RequestID == "" {
		return explained
	}
	switch shown.code {
	case exitForbidden, exitError: // others are about the command line, or about what is there
		shown.text += "\n`holdfast account audit --request-id " + refusal.RequestID + "` shows the request in the audit log"
	}
	return explained
}

// RefusalCode returns the exit code for an error code of the API.
func RefusalCode(code wire.ErrorCode) int {
	switch code {
	case wire.CodeUnauthorized:
		return exitKey
	case wire.CodeInsufficientScope, wire.CodeDangerousNotAllowed, wire.CodeForbidden, wire.CodeReadOnly, wire.CodeAccessDenied:
		return exitForbidden
	case wire.CodeNotFound:
		return exitNotFound
	case wire.CodeConflict:
		return exitConflict
	case wire.CodeValidation:
		return exitUsage
	case wire.CodeRateLimited:
		return exitRateLimited
	default:
		return exitError
	}
}

func explainRefusal(e *client.Error, base string) string {
	switch e.Code {
	case wire.CodeUnauthorized:
		return "the API key for " + base + " is unknown, expired or revoked; `holdfast login` gets a new one"
	case wire.CodeInsufficientScope:
		return e.Message + "; `holdfast login --preset` gets a key that may do more"
	case wire.CodeDangerousNotAllowed:
		return e.Message + " in the console, or with `holdfast admin key update ID --allow-dangerous=true`"
	case wire.CodeInternal:
		if e.Status == http.StatusServiceUnavailable { // the message says what cannot be reached
			return e.Message
		}
		return "the appliance had an internal error; its log says more at request " + e.RequestID
	default:
		return e.Message
	}
}

// explainConnection says why the appliance was not reached. It omits the
// error's own text, which contains the whole URL with its signature.
func explainConnection(err error, base string) string {
	carried, _ := errors.AsType[*url.Error](err)
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	lookup, noName := errors.AsType[*net.DNSError](err)
	switch {
	case untrusted:
		return fmt.Sprintf("%s is not trusted: %v; --ca-cert names the authority's certificate (tls/ca.crt in the appliance's data directory)", base, carried.Err)
	case strings.Contains(carried.Err.Error(), "HTTP response to HTTPS"):
		return base + " speaks plain HTTP; begin the URL with http://"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing answers at " + base + "; does `holdfast serve` run there? --url or HOLDFAST_URL names another place"
	case noName:
		return fmt.Sprintf("there is no host %s; --url or HOLDFAST_URL names another place", lookup.Name)
	default:
		return fmt.Sprintf("%s cannot be reached: %v", base, carried.Err)
	}
}
