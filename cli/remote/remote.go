package remote

import (
	"fmt"

	"github.com/spf13/cobra"
)

// Commands returns the commands, for the root of the command line; version is
// what the program is called in audit logs.
func Commands(version string) []*cobra.Command {
	s := &session{userAgent: "holdfast/" + version}
	commands := []*cobra.Command{
		newLogin(s), newLogout(s), newWhoami(s), newProfile(s),
		newDatabase(s), newBackup(s), newRecovery(s), newImport(s), newBucket(s), newObject(s),
		newAccount(s), newAgent(s), newAPI(s),
	}
	for _, cmd := range commands {
		s.register(cmd)
	}
	return append(commands, newExitCodes())
}

// Group returns a command that only holds others, and complains about what it
// does not hold.
func Group(use, short string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return unknownCommand(cmd, args[0])
		},
	}
	cmd.AddCommand(commands...)
	return cmd
}

func unknownCommand(cmd *cobra.Command, name string) error {
	text := fmt.Sprintf("unknown command %q for %q", name, cmd.CommandPath())
	cmd.SuggestionsMinimumDistance = 2
	if similar := cmd.SuggestionsFor(name); len(similar) > 0 {
		text += fmt.Sprintf("; did you mean %q?", similar[0])
	}
	return usagef("%s; see `%s --help`", text, cmd.CommandPath())
}
