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

	"holdfast/cli/remote"
	"holdfast/cli/sandbox"
	"holdfast/engine/model"
	"holdfast/server/api/wire"
)

// The exit codes that are not remote.ExitCode's.
const (
	exitOK    = 0
	exitUsage = 2 // the command was not understood
)

// Main runs the command line and returns the process's exit code.
func Main() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // the first ends things in order, the next one at once
	err := NewRoot().ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	if ended, ok := errors.AsType[*sandbox.Ended](err); ok && ended.Err == nil {
		return ended.Code // the command has said what there was to say
	} else if ok {
		fmt.Fprintln(remote.Plain(os.Stderr), "holdfast: "+describe(err))
		return ended.Code
	}
	fmt.Fprintln(remote.Plain(os.Stderr), "holdfast: "+describe(err))
	return exitCode(err)
}

// exitCode is that of a command that ended with err. What the operator's
// commands are refused with has the code it has for everybody.
func exitCode(err error) int {
	if _, usage := errors.AsType[usageError](err); usage {
		return exitUsage
	}
	if refusal, ok := errors.AsType[*model.Error](err); ok {
		return remote.RefusalCode(wire.ErrorCode(refusal.Code))
	}
	return remote.ExitCode(err)
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
	root := remote.Group("holdfast", "Managed PostgreSQL, object storage and backups in one binary")
	root.Version = version()
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w; see `%s --help`", err, cmd.CommandPath())}
	})
	root.AddCommand(newServe(), newAdmin(), newDoctor(), newRun(), newPrivateAppliance())
	root.AddCommand(remote.Commands(version())...)
	addOffline(root)
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	if help, _, err := root.Find([]string{"help"}); err == nil {
		help.Args = knownTopic
	}
	complainOfArguments(root)
	return root
}

// complainOfArguments has cmd, and the commands in it, take arguments that they
// cannot have for wrong usage.
func complainOfArguments(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		complainOfArguments(sub)
	}
	check := cmd.Args
	if !cmd.Runnable() {
		check = knownCommand
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usageError{fmt.Errorf("%w; see `%s --help`", err, cmd.CommandPath())}
		}
		return nil
	}
}

// knownTopic are the arguments of help: what names a command.
func knownTopic(cmd *cobra.Command, args []string) error {
	found, rest, err := cmd.Root().Find(args)
	if err != nil {
		return err
	}
	return knownCommand(found, rest)
}

// knownCommand are the arguments of a command that only holds others: what is
// left of them names none.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	text := fmt.Sprintf("unknown command %q for %q", args[0], cmd.CommandPath())
	cmd.SuggestionsMinimumDistance = 2
	if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
		text += fmt.Sprintf("; did you mean %q?", similar[0])
	}
	return errors.New(text)
}

// version is what the build says of itself.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}
