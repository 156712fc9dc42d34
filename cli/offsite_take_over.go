package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"holdfast/engine/offsite"
)

// newOffsiteTakeOver returns the command that lets a machine go on from which another one
// took over.
func newOffsiteTakeOver() *cobra.Command {
	var c config
	var yes bool
	cmd := &cobra.Command{
		Use:   "take-over",
		Short: "Let this machine go on after another one took over from it",
		Long: "Let this machine go on after another one took over from it, for example in a drill. Stop the other one first, and this\n" +
			"one. The next start of this one takes over; what the other one changed since is in older points of the copy only.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.load(cmd.Flags()); err != nil {
				return err
			}
			if !yes {
				return usageError{errors.New("the copy goes on with what this machine has, without what the other one changed: say --yes if that one is stopped")}
			}
			if err := mustExist(c.DataDir); err != nil {
				return err
			}
			if err := giveUpRoot(c.DataDir, c.User); err != nil {
				return err
			}
			if err := offsite.TakeOver(c.DataDir); err != nil {
				return err
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "The next start of this machine takes over.")
			return err
		},
	}
	c.registerCommon(cmd.Flags())
	cmd.Flags().BoolVar(&yes, "yes", false, "take over")
	return cmd
}
