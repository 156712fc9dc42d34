package cli

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"

	"holdfast/cli/remote"
	"holdfast/cli/sandbox"
	"holdfast/engine/model"
	"holdfast/server/api/wire"
)

// Exit codes in addition to remote.ExitCode's.
const (
	exitOK    = 0
	exitUsage = 2 // the command was not understood
)

// Main runs the command line and returns the process's exit code.
func Main() int {
	ctx, stop := interruptible()
	defer stop()
	err := NewRoot().ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	if ended, ok := errors.AsType[*sandbox.Ended](err); ok && ended.Err == nil {
		return ended.Code // the command has reported its own errors
	} else if ok {
		fmt.Fprintln(remote.Plain(os.Stderr), "holdfast: "+describe(err))
		return ended.Code
	}
	fmt.Fprintln(remote.Plain(os.Stderr), "holdfast: "+describe(err))
	return exitCode(err)
}

// exitCode returns the exit code for err. A refused operator command has the
// same code as a refused API request.
func exitCode(err error) int {
	if _, usage := errors.AsType[usageError](err); usage {
		return exitUsage
	}
	if refusal, ok := errors.AsType[*model.Error](err); ok {
		return remote.RefusalCode(wire.ErrorCode(refusal.Code))
	}
	return remote.ExitCode(err)
}

// describe returns the message for a person: a *model.Error's Message is
// complete.
func describe(err error) string {
	if public, ok := errors.AsType[*model.Error](err); ok && public.Err == nil {
		return public.Message
	}
	return err.Error()
}

// usageError is an invalid command line, variable or config file.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// NewRoot returns the root command, for Main and for the generator of the
// manual.
func NewRoot() *cobra.Command {
	root := remote.Group("holdfast", "Managed PostgreSQL, object storage and backups in one binary")
	root.Version = version()
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w; see `%s --help`", explainFlag(err), cmd.CommandPath())}
	})
	root.AddCommand(newServe(), newAdmin(), newDoctor(), newRun(), newSandbox(), newOffsite(), newRecover(), newPrivateAppliance())
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

// complainOfArguments makes cmd and its subcommands report invalid arguments as
// usage errors.
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

// knownTopic checks the arguments of help, which must name a command.
func knownTopic(cmd *cobra.Command, args []string) error {
	found, rest, err := cmd.Root().Find(args)
	if err != nil {
		return err
	}
	return knownCommand(found, rest)
}

// knownCommand rejects arguments of a command that only holds subcommands: they
// name none of them.
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

// version returns the version in the build information.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}
