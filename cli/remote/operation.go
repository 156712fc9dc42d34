package remote

import (
	"fmt"
	"io"
	"iter"

	"github.com/spf13/cobra"

	"holdfast/cli/client"
	"holdfast/server/api/wire"
)

func newOperation(s *session) *cobra.Command {
	return Group("operation", "Backups, restores, imports and others, running and ended",
		newOperationList(s), newOperationGet(s), newOperationCancel(s))
}

func newOperationList(s *session) *cobra.Command {
	var database, kind, status string
	cmd := s.command("list", "Show the operations", cobra.NoArgs, func(t *task, _ []string) error {
		o := client.OperationOptions{Type: wire.OperationType(kind), Status: wire.OperationStatus(status)}
		if database != "" {
			db, err := t.database(database)
			if err != nil {
				return err
			}
			o.DatabaseID = db.ID
		}
		return list(t, t.api.Operations(t.ctx, o), "there are no such operations",
			[]string{"ID", "TYPE", "STATUS", "DONE", "PHASE", "DATABASE", "BEGUN"}, func(op wire.Operation) []string {
				return []string{
					op.ID, string(op.Type), string(op.Status), fmt.Sprintf("%d%%", op.ProgressPercent), text(op.Phase), op.DatabaseID, Ago(&op.StartedAt),
				}
			})
	})
	cmd.Flags().StringVar(&database, "database", "", "only those on the database with this name or id")
	cmd.Flags().StringVar(&kind, "type", "", "only those of this type, such as backup or export")
	cmd.Flags().StringVar(&status, "status", "", "only those with this status, such as running or cancelled")
	flagWords(cmd, "database", s.complete(databaseNames))
	return cmd
}

func newOperationGet(s *session) *cobra.Command {
	var wait bool
	cmd := s.command("get OPERATION", "Show an operation", cobra.ExactArgs(1), func(t *task, args []string) error {
		op, err := t.api.GetOperation(t.ctx, args[0], 0)
		if err == nil && wait {
			return t.awaitOperation(op, "the "+string(op.Type))
		}
		return shows(t, operationDetails)(op, err)
	})
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until it has ended")
	return s.positions(cmd, operationNames)
}

func newOperationCancel(s *session) *cobra.Command {
	cmd := s.command("cancel OPERATION", "Cancel an operation", cobra.ExactArgs(1), func(t *task, args []string) error {
		return t.cancelOperation(args[0])
	})
	cmd.Long = "Cancel a backup, restore, export, import or verification. What it has done so far is rolled back."
	return s.positions(cmd, operationNames)
}

func (t *task) cancelOperation(id string) error {
	op, err := t.api.CancelOperation(t.ctx, id)
	if err != nil {
		return err
	}
	return t.show(op, func(w io.Writer) { fmt.Fprintf(w, "the %s %s is %s\n", op.Type, op.ID, op.Status) })
}

// awaitEnd returns an operation when it has ended, and shows its progress until then.
func (t *task) awaitEnd(op wire.Operation, act string) (wire.Operation, error) {
	m := t.meter(act)
	id := op.ID
	op, err := t.api.AwaitOperation(t.ctx, op, func(op wire.Operation) { m.percent(op.ProgressPercent, text(op.Phase)) })
	m.stop()
	t.noteGoesOn("`holdfast operation get %s --wait` waits for it again, `holdfast operation cancel %s` cancels it", id, id)
	return op, err
}

// noteGoesOn says, after a wait that was interrupted, how to look at what goes on.
func (t *task) noteGoesOn(how string, args ...any) {
	if t.ctx.Err() != nil {
		t.note("the appliance goes on with it: "+how, args...)
	}
}

// awaitOperation waits until an operation has ended, and shows it.
func (t *task) awaitOperation(op wire.Operation, act string) error {
	op, err := t.awaitEnd(op, act)
	if err != nil {
		return err
	}
	if err := t.show(op, func(w io.Writer) { operationDetails(w, op) }); err != nil {
		return err
	}
	return failed(act, op.Status != wire.OperationCompleted, op.Error)
}

func operationDetails(w io.Writer, op wire.Operation) {
	by := ""
	if op.CancelledBy != nil {
		by = text(op.CancelledBy.Name)
	}
	details(w,
		"id", op.ID, "type", string(op.Type), "status", string(op.Status), "done", fmt.Sprintf("%d%%", op.ProgressPercent), "phase", text(op.Phase),
		"database", op.DatabaseID, "new database", text(op.NewDatabaseID), "backup", text(op.BackupID),
		"cancelled by", by, "error", text(op.Error), "begun", formatTime(&op.StartedAt), "completed", formatTime(op.CompletedAt))
}

// operationNames yields the operations that run.
func operationNames(t *task, _ []string, _ string) iter.Seq2[named, error] {
	return each(t.api.Operations(t.ctx, client.OperationOptions{Status: wire.OperationRunning}), func(op wire.Operation) named {
		return named{id: op.ID, note: string(op.Type)}
	})
}

// newImportCancel cancels by the import, whose operation few people know.
func newImportCancel(s *session) *cobra.Command {
	cmd := s.command("cancel IMPORT", "Cancel an import, and remove what it has copied", cobra.ExactArgs(1), func(t *task, args []string) error {
		id, err := t.importID(args[0])
		if err != nil {
			return err
		}
		i, err := t.api.GetImport(t.ctx, id)
		if err != nil {
			return err
		}
		for op, err := range t.api.Operations(t.ctx, client.OperationOptions{DatabaseID: i.DatabaseID, Type: wire.OperationImport}) {
			if err != nil {
				return err
			}
			return t.cancelOperation(op.ID)
		}
		return failf(exitFailed, "the import is %s: there is nothing to cancel", i.Status)
	})
	cmd.Long = "Cancel an import, and remove what it has copied. IMPORT is its id, or the name of the database that it makes."
	return s.positions(cmd, importNames)
}
