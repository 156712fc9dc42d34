package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"holdfast/engine/model"
)

// The exit codes.
const (
	exitOK    = 0
	exitError = 1 // the command was understood and could not be done
	exitUsage = 2 // the command was not understood
)

// Main runs the command line and returns the process's exit code.
func Main() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := NewRoot().ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	fmt.Fprintln(os.Stderr, "holdfast: "+describe(err))
	if _, usage := errors.AsType[usageError](err); usage {
		return exitUsage
	}
	return exitError
}

// describe is what a person is told of an error: an *Error's message says all.
func describe(err error) string {
	if public, ok := errors.AsType[*model.Error](err); ok && public.Err == nil {
		return public.Message
	}
	return err.Error()
}

// usageError is a command line, variable or config file that makes no sense.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// NewRoot returns the command line, for Main and for what writes its manual.
func NewRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "holdfast",
		Short:         "Managed PostgreSQL, object storage and backups in one binary",
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w; see `%s --help`", err, cmd.CommandPath())}
	})
	root.AddCommand(newServe(), newAdmin(), newDoctor(), newBackup())
	return root
}

// version is what the build says of itself.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}
