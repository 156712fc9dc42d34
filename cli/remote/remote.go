package remote

import "github.com/spf13/cobra"

// Commands returns the commands for the root of the command line; version
// identifies the program in audit logs.
func Commands(version string) []*cobra.Command {
	s := newSession(version)
	commands := []*cobra.Command{
		newLogin(s), newLogout(s), newWhoami(s), newProfile(s),
		newDatabase(s), newBranch(s), newExtension(s), newBackup(s), newRecovery(s), newImport(s), newOperation(s), newEvents(s), newWebhook(s), newBucket(s), newObject(s), newTrash(s),
		newProject(s), newKey(s), newUser(s), newUserSession(s), newAccount(s), newAgent(s), newAPI(s),
	}
	for _, cmd := range commands {
		s.register(cmd)
	}
	return append(commands, newExitCodes())
}

func newSession(version string) *session { return &session{userAgent: "holdfast/" + version} }

// Group returns a command that only holds subcommands.
func Group(use, short string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short}
	cmd.AddCommand(commands...)
	return cmd
}
