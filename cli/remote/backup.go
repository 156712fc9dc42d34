package remote

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"holdfast/cli/client"
)

func newBackup(s *session) *cobra.Command {
	return Group("backup", "Backups of a database",
		newBackupList(s), newBackupCreate(s), newBackupGet(s), newBackupDelete(s), newBackupRestore(s),
		newBackupPin(s), newBackupUnpin(s), newBackupExport(s))
}

// aboutBackup makes a command about a backup: its database, and its id or
// "latest".
func (s *session) aboutBackup(use, short string, do func(*task, client.Database, client.Backup) error) *cobra.Command {
	cmd := s.aboutDatabase(use+" DATABASE BACKUP", short, cobra.ExactArgs(2),
		func(t *task, db client.Database, args []string) error {
			b, err := t.backup(db, args[0])
			if err != nil {
				return err
			}
			return do(t, db, b)
		})
	cmd.Long = short + ". BACKUP is the backup's id, or `" + latest + "` for the newest completed one."
	return s.positions(cmd, databaseNames, backupNames)
}

func newBackupList(s *session) *cobra.Command {
	return s.aboutDatabase("list DATABASE", "Show the backups of a database", cobra.ExactArgs(1),
		func(t *task, db client.Database, _ []string) error {
			backups, rows := []client.Backup{}, [][]string{}
			for b, err := range t.api.Backups(t.ctx, db.ID) {
				if err != nil {
					return err
				}
				backups = append(backups, b)
				rows = append(rows, []string{
					b.ID, b.Type, backupStatus(b), b.Verification.Status, sizeOr(b.StoredBytes), yesNo(b.Pinned), Ago(&b.StartedAt),
				})
			}
			return t.list(backups, "there are no backups of "+db.Name+" yet; `holdfast backup create "+db.Name+"` makes one",
				[]string{"ID", "TYPE", "STATUS", "PROOF", "STORED", "PINNED", "STARTED"}, rows)
		})
}

func backupStatus(b client.Backup) string {
	if b.Status == client.StatusRunning {
		return fmt.Sprintf("running %d%%", b.ProgressPercent)
	}
	return b.Status
}

func newBackupCreate(s *session) *cobra.Command {
	var wait bool
	cmd := s.aboutDatabase("create DATABASE", "Begin a backup of a database", cobra.ExactArgs(1),
		func(t *task, db client.Database, _ []string) error {
			b, err := t.api.CreateBackup(t.ctx, db.ID)
			if err == nil && wait {
				b, err = t.awaitBackup(db, b)
			}
			if err != nil {
				return err
			}
			if err := t.show(b, func(w io.Writer) { t.printBackup(w, db, b) }); err != nil {
				return err
			}
			return failed("the backup", b.Status, b.Error)
		})
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until it is completed")
	return cmd
}

func (t *task) awaitBackup(db client.Database, b client.Backup) (client.Backup, error) {
	m := t.meter("backing up " + db.Name)
	defer m.stop()
	return t.api.AwaitBackup(t.ctx, db.ID, b.ID, func(b client.Backup) { m.percent(b.ProgressPercent, b.Status) })
}

func (t *task) printBackup(w io.Writer, db client.Database, b client.Backup) {
	switch b.Status {
	case client.StatusCompleted:
		fmt.Fprintf(w, "backup %s of %s is completed: %s, stored in %s\n", b.ID, db.Name, sizeOr(b.SizeBytes), sizeOr(b.StoredBytes))
	case client.StatusFailed:
	default:
		fmt.Fprintf(w, "backup %s of %s is %s\n", b.ID, db.Name, b.Status)
		t.remark("`holdfast backup get %s %s` shows how far it is", db.Name, b.ID)
	}
}

// failed is the error of something that was waited for and went wrong.
func failed(what, status string, reason *string) error {
	if status != client.StatusFailed {
		return nil
	}
	if text(reason) == "" {
		return failf(exitFailed, "%s has failed", what)
	}
	return failf(exitFailed, "%s has failed: %s", what, *reason)
}

func newBackupGet(s *session) *cobra.Command {
	return s.aboutBackup("get", "Show a backup", func(t *task, _ client.Database, b client.Backup) error {
		return t.show(b, func(w io.Writer) {
			details(w,
				"id", b.ID, "type", b.Type, "status", backupStatus(b), "error", text(b.Error),
				"started", moment(&b.StartedAt), "completed", moment(b.CompletedAt), "expires", orNever(moment(b.ExpiresAt)),
				"pinned", yesNo(b.Pinned), "pin reason", text(b.PinReason),
				"size", sizeOr(b.SizeBytes), "stored", sizeOr(b.StoredBytes), "PostgreSQL", text(b.PostgresVersion),
				"proof", b.Verification.Status, "proven", moment(b.Verification.VerifiedAt), "", text(b.Verification.Detail))
		})
	})
}

func newBackupDelete(s *session) *cobra.Command {
	return s.aboutBackup("delete", "Delete a backup", func(t *task, db client.Database, b client.Backup) error {
		if err := t.confirm("delete the backup %s of %s, made %s", b.ID, db.Name, Ago(&b.StartedAt)); err != nil {
			return err
		}
		deleted, err := t.api.DeleteBackup(t.ctx, db.ID, b.ID)
		if err != nil {
			return err
		}
		return t.show(deleted, func(w io.Writer) { fmt.Fprintf(w, "deleted %s\n", b.ID) })
	})
}

func newBackupPin(s *session) *cobra.Command {
	var reason string
	cmd := s.aboutBackup("pin", "Keep a backup from expiring and from being deleted",
		func(t *task, db client.Database, b client.Backup) error {
			return t.pin(db, b, client.PinBackup{Pinned: true, Reason: reason}, "is pinned")
		})
	cmd.Flags().StringVar(&reason, "reason", "", "why, for others to read")
	return cmd
}

func newBackupUnpin(s *session) *cobra.Command {
	return s.aboutBackup("unpin", "Let a backup expire again", func(t *task, db client.Database, b client.Backup) error {
		return t.pin(db, b, client.PinBackup{}, "is no longer pinned")
	})
}

func (t *task) pin(db client.Database, b client.Backup, in client.PinBackup, says string) error {
	b, err := t.api.PinBackup(t.ctx, db.ID, b.ID, in)
	if err != nil {
		return err
	}
	return t.show(b, func(w io.Writer) { fmt.Fprintf(w, "%s %s\n", b.ID, says) })
}

func newBackupRestore(s *session) *cobra.Command {
	var wait bool
	var name string
	cmd := s.aboutBackup("restore", "Put a database back to what it was when a backup was made",
		func(t *task, db client.Database, b client.Backup) error {
			in := client.RestoreBackup{Mode: client.RestoreInPlace}
			if name != "" {
				in = client.RestoreBackup{Mode: client.RestoreNew, Name: name}
			} else if err := t.confirm("replace the data of %s by that of %s, and remove what an earlier restore replaced", db.Name, moment(&b.StartedAt)); err != nil {
				return err
			}
			op, err := t.api.RestoreBackup(t.ctx, db.ID, b.ID, in)
			return t.follow(db, op, err, wait, restoreOf(db, name))
		})
	cmd.Long += "\nThe database stays up until the switch, and its URL stays the same. What the restore replaces is kept for a\n" +
		"while: `holdfast recovery undo` brings it back. That of an earlier restore is then gone."
	restoreFlags(cmd, &name, &wait)
	return cmd
}

func restoreFlags(cmd *cobra.Command, name *string, wait *bool) {
	cmd.Flags().StringVar(name, "into", "", "name of a new database to restore into, instead of in place")
	cmd.Flags().BoolVar(wait, "wait", false, "wait until it is completed")
}

// restoreOf says what is done: name is that of a new database, "" in place.
func restoreOf(db client.Database, name string) string {
	if name != "" {
		return "the restore of " + db.Name + " into " + name
	}
	return "the restore of " + db.Name
}

// follow shows an operation that has begun, and with wait how it ended.
func (t *task) follow(db client.Database, op client.Operation, err error, wait bool, act string) error {
	if err != nil {
		return err
	}
	if !wait {
		return t.show(op, func(w io.Writer) {
			fmt.Fprintf(w, "%s has begun (%s)\n", act, op.ID)
			t.remark("`holdfast recovery status %s` shows how far it is", db.Name)
		})
	}
	m := t.meter(act)
	op, err = t.api.AwaitOperation(t.ctx, op, func(op client.Operation) { m.percent(op.ProgressPercent, text(op.Phase)) })
	m.stop()
	if err != nil {
		return err
	}
	if err := t.show(op, func(w io.Writer) {
		if op.Status == client.StatusCompleted {
			fmt.Fprintf(w, "%s is completed\n", act)
		}
	}); err != nil {
		return err
	}
	return failed(act, op.Status, op.Error)
}
