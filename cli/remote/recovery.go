package remote

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast/server/api/wire"
)

func newRecovery(s *session) *cobra.Command {
	return Group("recovery", "Point-in-time recovery of a database", newRecoveryStatus(s), newRecoveryRestore(s), newRecoveryUndo(s))
}

func newRecoveryStatus(s *session) *cobra.Command {
	return s.aboutDatabase("status DATABASE", "Show to which moments a database can be brought back", cobra.ExactArgs(1),
		func(t *task, db wire.Database, _ []string) error {
			return shows(t, recoveryDetails)(t.api.GetRecovery(t.ctx, db.ID))
		})
}

func recoveryDetails(w io.Writer, r wire.Recovery) {
	lost := ""
	if r.RPOSeconds != nil {
		lost = fmt.Sprintf("%.1f s", *r.RPOSeconds)
	}
	details(w,
		"status", string(r.Status), "from", exactly(r.EarliestRestorableTime), "until", exactly(r.LatestRestorableTime),
		"could be lost", lost, "WAL archive", string(r.WALArchiving.Status), "last archived", formatTime(r.WALArchiving.LastArchivedAt),
		"behind", size(r.WALArchiving.BacklogBytes), "last error", text(r.WALArchiving.LastError),
		"gaps", fmt.Sprint(len(r.WALArchiving.Gaps)), "next backup", formatTime(r.Schedule.NextRunAt),
		"off-site recovers to", formatTime(r.Offsite.Point), "off-site last verified", formatTime(r.Offsite.VerifiedAt))
	printMore(w, []string{"AT", "WHAT", "BACKUP", "LSN"}, r.Timeline, func(event wire.RecoveryEvent) []string {
		return []string{formatTime(&event.At), string(event.Type), text(event.BackupID), text(event.LSN)}
	})
	printMore(w, []string{"BEGUN", "OPERATION", "STATUS", "DONE", "WHAT"}, r.Operations, func(op wire.Operation) []string {
		what := text(op.Error)
		if op.Status == wire.OperationRunning {
			what = text(op.Phase)
		}
		return []string{formatTime(&op.StartedAt), string(op.Type), string(op.Status), fmt.Sprintf("%d%%", op.ProgressPercent), what}
	})
}

// exactly formats a time for --to without rounding down, which would lose the
// last commit.
func exactly(at *time.Time) string {
	if at == nil {
		return ""
	}
	return at.Local().Format(time.RFC3339Nano)
}

func newRecoveryRestore(s *session) *cobra.Command {
	var at, lsn, name string
	var wait, dryRun bool
	cmd := s.aboutDatabase("restore DATABASE (--to TIME | --to-lsn LSN)", "Put a database back to a moment", cobra.ExactArgs(1),
		func(t *task, db wire.Database, _ []string) error {
			in, err := restoreTarget(at, lsn, name, time.Now())
			if err != nil {
				return err
			}
			if dryRun {
				return t.planRestore(db, in)
			}
			if name == "" {
				if err := t.confirm("replace the data of %s by that of %s, and remove what an earlier restore replaced", db.Name, at+lsn); err != nil {
					return err
				}
			}
			op, err := t.api.RequestRestore(t.ctx, db.ID, in)
			return t.follow(db, op, err, wait, restoreOf(db, name))
		})
	cmd.Long = "Put a database back to a moment: everything committed before it is there, and nothing after it.\n" +
		"What the restore replaces is kept for a while: `holdfast recovery undo` brings it back. That of an earlier restore is\n" +
		"then gone; to go back further, restore to a moment before that."
	cmd.Example = "  holdfast recovery restore shop --to 2026-03-01T12:00:00Z\n  holdfast recovery restore shop --to 10m --into shop-before --wait"
	flags := cmd.Flags()
	flags.StringVar(&at, "to", "", "the moment: RFC 3339 such as 2026-03-01T12:00:00Z, or how long ago, such as 10m or 2d")
	flags.StringVar(&lsn, "to-lsn", "", "the place in the write-ahead log, such as 0/1A2B3C4D")
	flags.BoolVar(&dryRun, "dry-run", false, "show what would be done, and do nothing")
	restoreFlags(cmd, &name, &wait)
	return cmd
}

// restoreTarget parses the target of a restore.
func restoreTarget(at, lsn, name string, now time.Time) (wire.RequestRestore, error) {
	in := wire.RequestRestore{TargetLSN: orNil(lsn), Mode: new(wire.RestoreInPlace)}
	if name != "" {
		in.Mode, in.Name = new(wire.RestoreNew), &name
	}
	if (at == "") == (lsn == "") {
		return in, usagef("say either --to or --to-lsn")
	}
	if at == "" {
		return in, nil
	}
	moment, err := timeOrAgo("to", at, now)
	in.TargetTime = &moment
	return in, err
}

// timeOrAgo parses a flag that is a time or a duration before now; "" gives the
// zero time.
func timeOrAgo(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if moment, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return moment.UTC(), nil
	}
	back, err := ParseDuration(text)
	if err != nil || back < 0 {
		return time.Time{}, usagef("%s: %q is neither a time such as 2026-03-01T12:00:00Z nor a duration such as 10m or 2d", flag, text)
	}
	return now.Add(-back).UTC(), nil
}

func (t *task) planRestore(db wire.Database, in wire.RequestRestore) error {
	return shows(t, func(w io.Writer, plan wire.RestorePlan) {
		details(w,
			"backup", plan.BackupID, "last commit", exactly(plan.TargetTime), "up to", plan.TargetLSN,
			"WAL to replay", size(plan.WALBytes), "files to restore", size(plan.RestoreBytes), "disk space needed", size(plan.NeededBytes),
			"takes about", about(plan.EstimatedSeconds))
		t.note("nothing was changed")
	})(t.api.PlanRestore(t.ctx, db.ID, in))
}

// about formats an estimate, which may be missing.
func about(seconds *float64) string {
	if seconds == nil {
		return "unknown: no restore or verification has been measured on that machine"
	}
	return fmt.Sprintf("%.0f s", *seconds)
}

// lastReplacement says what the undoing of db's last restore or upgrade undoes, as far as the key may read it.
func (t *task) lastReplacement(db wire.Database) string {
	recovery, err := t.api.GetRecovery(t.ctx, db.ID)
	if err != nil {
		return "the last restore or upgrade"
	}
	for _, op := range recovery.Operations {
		switch {
		case op.Status != wire.OperationCompleted || op.NewDatabaseID != nil:
		case op.Type == wire.OperationUpgrade && op.Upgrade != nil:
			return fmt.Sprintf("the upgrade from PostgreSQL %s to %s", op.Upgrade.FromVersion, op.Upgrade.Version)
		case op.Type == wire.OperationRestore || op.Type == wire.OperationPITR || op.Type == wire.OperationReset:
			return "the last " + strings.ReplaceAll(string(op.Type), "_", " ")
		}
	}
	return "the last restore or upgrade"
}

func newRecoveryUndo(s *session) *cobra.Command {
	var wait bool
	cmd := s.aboutDatabase("undo DATABASE", "Bring back the data that the last restore or upgrade replaced", cobra.ExactArgs(1),
		func(t *task, db wire.Database, _ []string) error {
			if err := t.confirm("set the data of %[1]s aside, with all that was written since, and bring back what it was before %[2]s", db.Name, t.lastReplacement(db)); err != nil {
				return err
			}
			op, err := t.api.UndoRestore(t.ctx, db.ID)
			return t.follow(db, op, err, wait, "the undoing of "+db.Name)
		})
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until it is completed")
	return cmd
}
