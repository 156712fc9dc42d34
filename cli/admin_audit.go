package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"holdfast/engine/model"
	"holdfast/server/operator"
)

func newAdminAudit() *cobra.Command {
	return group("audit", "The audit log", newAdminAuditVerify(), newAdminAuditExport())
}

func ofAppliance(cmd *cobra.Command, in *operator.Log) {
	cmd.Flags().BoolVar(&in.Appliance, "appliance", false, "the log of what belongs to no organization, such as requests without a valid key")
}

func newAdminAuditVerify() *cobra.Command {
	var in operator.Log
	cmd := newAdminCommand("verify", "Check that no audit entry was changed, removed or reordered",
		model.ActionAuditVerify, cobra.NoArgs,
		func(*admin, *cobra.Command, []string) (any, error) { return in, nil },
		func(w io.Writer, v operator.Verified) {
			if len(v.Faults) == 0 {
				fmt.Fprintf(w, "%d entries, the chain is intact\n", v.Entries)
			}
			for _, fault := range v.Faults {
				fmt.Fprintln(w, fault)
			}
		}, inOrganization)
	ofAppliance(cmd, &in)
	return cmd
}

func newAdminAuditExport() *cobra.Command {
	var in operator.Export
	a := &admin{}
	cmd := &cobra.Command{
		Use: "export", Short: "Write the audit log to standard output, oldest first, an entry a line in JSON",
		Long: "Write the audit log to standard output, oldest first, an entry a line in JSON as it is stored.\n" +
			"Each line has the hash of the one before it: a copy elsewhere shows what was changed later.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.load(cmd.Flags()); err != nil {
				return err
			}
			return export(cmd, a, in)
		},
	}
	a.registerCommon(cmd.Flags())
	ofAppliance(cmd, &in.Log)
	inOrganization(a, cmd)
	return cmd
}

// export requests the log in parts.
func export(cmd *cobra.Command, a *admin, in operator.Export) error {
	for {
		part, err := ask[operator.Exported](cmd, a, model.ActionAuditExport, in)
		if err != nil {
			return err
		}
		for _, line := range part.Lines {
			if _, err := fmt.Fprintln(cmd.OutOrStdout(), line); err != nil {
				return fmt.Errorf("write the audit log: %w", err)
			}
		}
		if part.Next == 0 {
			return nil
		}
		in.From = part.Next
	}
}
