package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"holdfast/cli/remote"
	"holdfast/engine/model"
	"holdfast/server/operator"
)

func newAdmin() *cobra.Command {
	cmd := group("admin", "The operator's commands",
		newAdminKey(), newAdminOrg(), newAdminProject(), newAdminUser(), newAdminSetupLink(),
		newAdminDatabase(), newAdminTrash(), newAdminAudit(), newAdminMetadata(), newAdminExportAll(), newAdminImportAll())
	cmd.Long = "The operator's commands. They speak to the running appliance over its socket in the data\n" +
		"directory, and work on the files when none runs."
	return cmd
}

// admin holds what all operator commands share.
type admin struct {
	config
	org       string
	json, yes bool
	// question describes what the command will delete; nil if it does not ask.
	question func(a *admin, args []string) string
}

// trait configures an option that some operator commands have.
type trait func(*admin, *cobra.Command)

// inOrganization adds the flag --org to a command.
func inOrganization(a *admin, cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.org, "org", model.DefaultName, "id or name of the organization")
}

// asking makes a command ask for confirmation, and adds the flag --yes.
func asking(question func(a *admin, args []string) string) trait {
	return func(a *admin, cmd *cobra.Command) {
		a.question = question
		cmd.Flags().BoolVarP(&a.yes, "yes", "y", false, "do not ask before something is deleted")
	}
}

// group returns a command that only holds subcommands.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	return remote.Group(use, short, commands...)
}

// newAdminCommand returns an operator command. arguments returns the request,
// and show prints the result for a person; with --json the result is printed
// unchanged. If the result has a method Err, the command returns its error.
func newAdminCommand[R any](
	use, short string, action model.Action, n cobra.PositionalArgs,
	arguments func(*admin, *cobra.Command, []string) (any, error), show func(io.Writer, R), traits ...trait,
) *cobra.Command {
	a := &admin{}
	cmd := &cobra.Command{
		Use: use, Short: short,
		Args: n,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.load(cmd.Flags()); err != nil {
				return err
			}
			sent, err := arguments(a, cmd, args)
			if err != nil {
				return err
			}
			if a.question != nil {
				if err := remote.Confirm(cmd, a.yes, a.question(a, args)); err != nil {
					return err
				}
			}
			result, err := ask[R](cmd, a, action, sent)
			if err != nil {
				return err
			}
			if err := printResult(cmd.OutOrStdout(), a.json, result, show); err != nil {
				return err
			}
			if verdict, ok := any(result).(interface{ Err() error }); ok {
				return verdict.Err()
			}
			return nil
		},
	}
	a.registerCommon(cmd.Flags())
	cmd.Flags().BoolVar(&a.json, "json", false, "print JSON")
	for _, t := range traits {
		t(a, cmd)
	}
	return cmd
}

func printResult[R any](w io.Writer, inJSON bool, result R, show func(io.Writer, R)) error {
	if !inJSON {
		return remote.Print(w, func(w io.Writer) { show(w, result) })
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(result)
}

func ask[R any](cmd *cobra.Command, a *admin, action model.Action, sent any) (R, error) {
	var result R
	text, err := json.Marshal(sent)
	if err != nil {
		return result, fmt.Errorf("encode arguments: %w", err)
	}
	err = callOperator(cmd.Context(), a.config, operator.Request{
		Action: action, Organization: a.org, Arguments: text,
	}, &result)
	return result, err
}

// nothing returns the arguments of a command that has none.
func nothing(*admin, *cobra.Command, []string) (any, error) { return struct{}{}, nil }

// target returns the arguments of a command about one named resource.
func target(_ *admin, _ *cobra.Command, args []string) (any, error) {
	return operator.Target{ID: args[0]}, nil
}

// named returns the arguments of a command that creates something with a name.
func named(_ *admin, _ *cobra.Command, args []string) (any, error) {
	return operator.Named{Name: args[0]}, nil
}

// rows prints a list in columns, below a heading.
func rows[T any](heading string, row func(T) []any) func(io.Writer, []T) {
	return func(w io.Writer, items []T) {
		columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(columns, heading)
		for _, item := range items {
			cells := row(item)
			fmt.Fprintf(columns, strings.Repeat("%v\t", len(cells)-1)+"%v\n", cells...)
		}
		_ = columns.Flush() // remote.Print remembers w's errors
	}
}
