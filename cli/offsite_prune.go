package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"holdfast/cli/remote"
	"holdfast/engine/offsite"
)

func newOffsitePrune() *cobra.Command {
	var retention time.Duration
	var dryRun, yes bool
	c := &copyCommand{}
	cmd := c.command("prune", "Remove from the store what no recovery needs any more", func(ctx context.Context, cmd *cobra.Command, at offsite.Location) error {
		if retention <= 0 {
			return usageError{errors.New("retention: must be more than 0")}
		}
		return prune(ctx, cmd, at, retention, c.json, dryRun, yes)
	})
	cmd.Long = fmt.Sprintf(`Remove from the store what no recovery to a moment within the retention needs. It needs credentials that may delete, which
the appliance does not: run it elsewhere, or with other credentials. Points whose lock has not ended remain, and what recoveries from them
on need: the appliance extends locks, so they end between once and twice its --offsite-retention after a point was made. What is younger than
%.0f days is never removed. Ages are by the store's clock, which must not differ from this machine's by more than an hour.`, offsite.PruneGrace.Hours()/24)
	cmd.Example = "  holdfast offsite prune s3://backups/home --passphrase-file /root/offsite.passphrase --retention 720h --yes"
	durationVar(cmd.Flags(), &retention, "retention", 30*24*time.Hour, "how far back a recovery must reach")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only say what would be removed")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

func prune(ctx context.Context, cmd *cobra.Command, at offsite.Location, retention time.Duration, inJSON, dryRun, yes bool) (err error) {
	p, err := offsite.PlanPrune(ctx, at, time.Now(), retention)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	planned := p.Plan()
	if dryRun || planned.Objects == 0 {
		return printResult(cmd.OutOrStdout(), inJSON, planned, func(w io.Writer, p offsite.Pruned) {
			fmt.Fprintf(w, "%d objects (%s) could be removed, %d points among them", p.Objects, amount(p.Bytes), p.Points)
			showLocked(w, p)
		})
	}
	if err := remote.Confirm(cmd, yes, fmt.Sprintf("remove %d objects (%s) from %s, %d points among them, for good", planned.Objects, amount(planned.Bytes), at.URL, planned.Points)); err != nil {
		return err
	}
	done, err := p.Run(ctx)
	if err != nil {
		return err
	}
	return printResult(cmd.OutOrStdout(), inJSON, done, func(w io.Writer, p offsite.Pruned) {
		fmt.Fprintf(w, "removed %d objects, %d points among them", p.Objects, p.Points)
		showLocked(w, p)
	})
}

// showLocked ends a line with what remains because it is locked.
func showLocked(w io.Writer, p offsite.Pruned) {
	if p.Locked > 0 {
		fmt.Fprintf(w, "; %d others are locked and remain", p.Locked)
	}
	if p.LockedSince != nil {
		fmt.Fprintf(w, "; points from %s on are locked and remain, with what they need", p.LockedSince.Local().Format(time.DateTime+" MST"))
	}
	fmt.Fprintln(w)
}
