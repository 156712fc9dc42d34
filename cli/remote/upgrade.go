package remote

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/server/api/wire"
)

func newDatabaseUpgrade(s *session) *cobra.Command {
	var version string
	var dryRun, noWait bool
	cmd := s.aboutDatabase("upgrade DATABASE", "Upgrade a database to a newer major version of PostgreSQL", cobra.ExactArgs(1),
		func(t *task, db wire.Database, _ []string) error {
			if version == "" {
				return usagef("say which major version: --to 18; `holdfast db versions` shows those of this machine")
			}
			if !dryRun {
				if err := t.confirmUpgrade(db, version); err != nil {
					return err
				}
			}
			op, err := t.api.UpgradeDatabase(t.ctx, db.ID, wire.UpgradeDatabase{Version: version, DryRun: &dryRun})
			return t.followUpgrade(db, op, err, !noWait)
		})
	cmd.Long = "Upgrade a database to a newer major version of PostgreSQL, in place: it is backed up, stopped, and a copy of its data\n" +
		"is upgraded. Its URL, users and passwords stay. If anything fails, it goes on with the version that it has.\n\n" +
		"With --dry-run, the newest backup is restored beside the running database and upgraded, and removed again. That shows\n" +
		"what the new version refuses, and how long the database will be down.\n\n" +
		"The data before the upgrade is kept for a while: `holdfast recovery undo` brings it back, without what was written\n" +
		"since. Replication slots of clients are not kept: the dry run names them."
	cmd.Example = "  holdfast db upgrade shop --to 18 --dry-run\n  holdfast db upgrade shop --to 18"
	cmd.Flags().StringVar(&version, "to", "", "the major version, such as 18")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "upgrade a copy, and remove it again")
	cmd.Flags().BoolVar(&noWait, "no-wait", false, "do not wait until it is completed")
	return cmd
}

// confirmUpgrade asks, and names the replication slots that the upgrade drops.
func (t *task) confirmUpgrade(db wire.Database, version string) error {
	if t.yes {
		return nil
	}
	dropped := ""
	if db.LogicalReplication {
		found, err := t.api.GetDatabaseReplication(t.ctx, db.ID)
		if err != nil {
			return err
		}
		var names []string
		for _, slot := range found.Slots {
			if !slot.Temporary {
				names = append(names, slot.Name)
			}
		}
		if len(names) > 0 {
			dropped = fmt.Sprintf(", drop its replication slots (%s), whose clients must copy everything again", strings.Join(names, ", "))
		}
	}
	return t.confirm("stop %s, upgrade it from PostgreSQL %s to %s%s, and remove what an earlier restore replaced", db.Name, text(db.Version), version, dropped)
}

// followUpgrade waits for the end of an upgrade and shows what it has found.
func (t *task) followUpgrade(db wire.Database, op wire.Operation, err error, wait bool) error {
	if err != nil {
		return err
	}
	act := "the upgrade of " + db.Name
	if op.Type == wire.OperationUpgradeDryRun {
		act = "the dry run for " + db.Name
	}
	if wait {
		if op, err = t.awaitEnd(op, act); err != nil {
			return err
		}
	}
	if err := t.show(op, func(w io.Writer) {
		if !wait {
			fmt.Fprintf(w, "%s has begun (%s)\n", act, op.ID)
		} else if op.Status == wire.OperationCompleted {
			fmt.Fprintf(w, "%s is completed\n", act)
			upgradeDetails(w, op)
		}
	}); err != nil {
		return err
	}
	return failed(act, op.Status == wire.OperationFailed || op.Status == wire.OperationCancelled, op.Error)
}

func upgradeDetails(w io.Writer, op wire.Operation) {
	u := op.Upgrade
	if u == nil {
		return
	}
	var updates []string
	for _, x := range u.ExtensionUpdates {
		updates = append(updates, fmt.Sprintf("%s %s to %s", x.Name, x.InstalledVersion, x.Version))
	}
	down := "was down for"
	if op.Type == wire.OperationUpgradeDryRun {
		down = "will be down for about"
	}
	details(w, "from", u.FromVersion, "to", u.Version, down, seconds(u.DownSeconds), "disk space needed", sizeOr(u.NeededBytes),
		"extensions to update", strings.Join(updates, ", "), "not as before", strings.Join(u.Notes, "; "))
}

func seconds(s *float64) string {
	if s == nil {
		return ""
	}
	return fmt.Sprintf("%.1f s", *s)
}
