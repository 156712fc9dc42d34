package remote

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"holdfast/cli/client"
	"holdfast/server/api/wire"
)

func newBackup(s *session) *cobra.Command {
	return Group("backup", "Backups of a database",
		newBackupList(s), newBackupCreate(s), newBackupGet(s), newBackupDelete(s), newBackupRestore(s),
		newBackupPin(s), newBackupUnpin(s), newBackupExport(s))
}

// aboutBackup returns a command whose arguments are a database and a backup id
// or "latest".
func (s *session) aboutBackup(use, short string, do func(*task, wire.Database, wire.Backup) error) *cobra.Command {
	cmd := s.aboutDatabase(use+" DATABASE BACKUP", short, cobra.ExactArgs(2),
		func(t *task, db wire.Database, args []string) error {
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
	var status, kind string
	cmd := s.aboutDatabase("list DATABASE", "Show the backups of a database", cobra.ExactArgs(1),
		func(t *task, db wire.Database, _ []string) error {
			o := client.BackupOptions{Status: wire.BackupStatus(status), Type: wire.BackupType(kind)}
			return list(t, t.api.Backups(t.ctx, db.ID, o), "there are no backups of "+db.Name+" yet; `holdfast backup create "+db.Name+"` makes one",
				[]string{"ID", "TYPE", "STATUS", "VERIFICATION", "STORED", "PINNED", "STARTED"}, func(b wire.Backup) []string {
					return []string{
						b.ID, string(b.Type), backupStatus(b), string(b.Verification.Status), sizeOr(b.StoredBytes), yesNo(b.Pinned), Ago(&b.StartedAt),
					}
				})
		})
	cmd.Flags().StringVar(&status, "status", "", "only those with this status, such as completed or failed")
	cmd.Flags().StringVar(&kind, "type", "", "only those of this type, manual or scheduled")
	return cmd
}

func backupStatus(b wire.Backup) string {
	if b.Status == wire.BackupRunning {
		return fmt.Sprintf("running %d%%", b.ProgressPercent)
	}
	return string(b.Status)
}

func newBackupCreate(s *session) *cobra.Command {
	var wait bool
	cmd := s.aboutDatabase("create DATABASE", "Begin a backup of a database", cobra.ExactArgs(1),
		func(t *task, db wire.Database, _ []string) error {
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
			return failed("the backup", b.Status == wire.BackupFailed, b.Error)
		})
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until it is completed")
	return cmd
}

func (t *task) awaitBackup(db wire.Database, b wire.Backup) (wire.Backup, error) {
	m := t.meter("backing up " + db.Name)
	id := b.ID
	b, err := t.api.AwaitBackup(t.ctx, db.ID, id, func(op wire.Operation) { m.percent(op.ProgressPercent, string(op.Status)) })
	m.stop()
	t.noteGoesOn("`holdfast backup get %s %s` shows how far it is", db.Name, id)
	return b, err
}

func (t *task) printBackup(w io.Writer, db wire.Database, b wire.Backup) {
	switch b.Status {
	case wire.BackupCompleted:
		fmt.Fprintf(w, "backup %s of %s is completed: %s, stored in %s\n", b.ID, db.Name, sizeOr(b.SizeBytes), sizeOr(b.StoredBytes))
	case wire.BackupFailed:
	default:
		fmt.Fprintf(w, "backup %s of %s is %s\n", b.ID, db.Name, b.Status)
		t.note("`holdfast backup get %s %s` shows how far it is", db.Name, b.ID)
	}
}

// failed returns the error of something that was waited for, nil if it did not
// fail.
func failed(what string, hasFailed bool, reason *string) error {
	if !hasFailed {
		return nil
	}
	if text(reason) == "" {
		return failf(exitFailed, "%s has failed", what)
	}
	return failf(exitFailed, "%s has failed: %s", what, *reason)
}

func newBackupGet(s *session) *cobra.Command {
	return s.aboutBackup("get", "Show a backup", func(t *task, _ wire.Database, b wire.Backup) error {
		return t.show(b, func(w io.Writer) {
			details(w,
				"id", b.ID, "type", string(b.Type), "status", backupStatus(b), "error", text(b.Error),
				"started", formatTime(&b.StartedAt), "completed", formatTime(b.CompletedAt), "expires", orNever(formatTime(b.ExpiresAt)),
				"pinned", yesNo(b.Pinned), "pin reason", text(b.PinReason),
				"size", sizeOr(b.SizeBytes), "stored", sizeOr(b.StoredBytes), "PostgreSQL", text(b.PostgresVersion),
				"verification", string(b.Verification.Status), "verified", formatTime(b.Verification.VerifiedAt), "", text(b.Verification.Detail))
		})
	})
}

func newBackupDelete(s *session) *cobra.Command {
	return s.aboutBackup("delete", "Delete a backup", func(t *task, db wire.Database, b wire.Backup) error {
		if err := t.confirm("delete the backup %s of %s, made %s", b.ID, db.Name, Ago(&b.StartedAt)); err != nil {
			return err
		}
		return shows(t, func(w io.Writer, deleted wire.DeletedBackup) { fmt.Fprintf(w, "deleted %s\n", deleted.ID) })(t.api.DeleteBackup(t.ctx, db.ID, b.ID))
	})
}

func newBackupPin(s *session) *cobra.Command {
	var reason string
	cmd := s.aboutBackup("pin", "Keep a backup from expiring and from being deleted",
		func(t *task, db wire.Database, b wire.Backup) error {
			return t.pin(db, b, wire.PinBackup{Reason: orNil(reason)}, "is pinned")
		})
	cmd.Flags().StringVar(&reason, "reason", "", "why, for others to read")
	return cmd
}

func newBackupUnpin(s *session) *cobra.Command {
	return s.aboutBackup("unpin", "Let a backup expire again", func(t *task, db wire.Database, b wire.Backup) error {
		return t.pin(db, b, wire.PinBackup{Pinned: new(false)}, "is no longer pinned")
	})
}

func (t *task) pin(db wire.Database, b wire.Backup, in wire.PinBackup, says string) error {
	return shows(t, func(w io.Writer, b wire.Backup) { fmt.Fprintf(w, "%s %s\n", b.ID, says) })(t.api.PinBackup(t.ctx, db.ID, b.ID, in))
}

func newBackupRestore(s *session) *cobra.Command {
	var wait bool
	var name string
	cmd := s.aboutBackup("restore", "Put a database back to what it was when a backup was made",
		func(t *task, db wire.Database, b wire.Backup) error {
			in := wire.RestoreBackup{Mode: new(wire.RestoreInPlace)}
			if name != "" {
				in = wire.RestoreBackup{Mode: new(wire.RestoreNew), Name: &name}
			} else if err := t.confirm("replace the data of %s by that of %s, and remove what an earlier restore replaced", db.Name, formatTime(&b.StartedAt)); err != nil {
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

// restoreOf describes a restore; name is the new database's, "" for in place.
func restoreOf(db wire.Database, name string) string {
	if name != "" {
		return "the restore of " + db.Name + " into " + name
	}
	return "the restore of " + db.Name
}

// follow shows an operation that has started, and with wait how it ended.
func (t *task) follow(db wire.Database, op wire.Operation, err error, wait bool, act string) error {
	if err != nil {
		return err
	}
	if !wait {
		return t.show(op, func(w io.Writer) {
			fmt.Fprintf(w, "%s has begun (%s)\n", act, op.ID)
			t.note("`holdfast recovery status %s` shows how far it is", db.Name)
		})
	}
	if op, err = t.awaitEnd(op, act); err != nil {
		return err
	}
	if err := t.show(op, func(w io.Writer) {
		if op.Status == wire.OperationCompleted {
			fmt.Fprintf(w, "%s is completed\n", act)
		}
	}); err != nil {
		return err
	}
	return failed(act, op.Status == wire.OperationFailed, op.Error)
}
