package engine

import (
	"context"
	"strings"
	"testing"

	"holdfast/engine/core"
	"holdfast/engine/model"
)

// TestActsOnDatabasesThatAreNotAvailable: the error of each operation names the database's state and the remedy. For a
// failed database that is not to wait.
func TestActsOnDatabasesThatAreNotAvailable(t *testing.T) {
	t.Parallel()
	a, db, _, b := startStepped(t)
	ctx := t.Context()
	down := map[string]func() error{ // these need the server
		"backup": func() error { _, err := a.Recovery.BackupCreate(a.call(model.ActionBackupCreate), db.ID); return err },
		"rotate the password": func() error {
			_, err := a.Databases.RotatePassword(ctx, a.call(model.ActionDatabaseRotatePassword), db.ID, false)
			return err
		},
		"allow-list": func() error {
			_, err := a.Databases.AllowlistSet(ctx, a.call(model.ActionAllowlistSet), db.ID, []string{"127.0.0.1"})
			return err
		},
		"row-level security": func() error { _, err := a.Databases.RLSGet(ctx, a.call(model.ActionRLSGet), db.ID, ""); return err },
	}
	whole := map[string]func() error{ // these do not, but exclude other operations
		"restart": func() error {
			_, err := a.Databases.Restart(ctx, a.call(model.ActionDatabaseRestart), db.ID)
			return err
		},
		"restore": func() error {
			_, err := a.Recovery.BackupRestore(a.call(model.ActionBackupRestore), db.ID, b.ID, nil)
			return err
		},
		"undo": func() error { _, err := a.Recovery.RecoveryUndo(a.call(model.ActionRecoveryUndo), db.ID); return err },
		"settings": func() error {
			_, err := a.Databases.ChangeSettings(ctx, a.call(model.ActionDatabaseSettings), db.ID, map[string]string{"work_mem": "8MB"})
			return err
		},
	}
	says := func(state string, acts map[string]func() error, want, unwanted string) {
		t.Helper()
		for name, act := range acts {
			err := act()
			if message := model.PublicMessage(err); model.CodeOf(err) != model.CodeConflict || !strings.Contains(message, want) ||
				unwanted != "" && strings.Contains(message, unwanted) {
				t.Errorf("%s, while it is %s: %v", name, state, err)
			}
		}
	}
	for status, want := range map[model.DatabaseStatus]string{
		model.DatabaseCreating: "does not exist if that fails", model.DatabaseImporting: "does not exist if that fails",
		model.DatabaseRestarting: "try again when it is available", model.DatabaseRestoring: "try again when it is available",
		model.DatabaseDeleting: "from the trash",
	} {
		a.edit(t, db.ID, func(d *model.Database) { d.Status = status })
		says(string(status), down, want, "")
		says(string(status), whole, want, "")
	}
	a.edit(t, db.ID, func(d *model.Database) { d.Status = model.DatabaseAvailable })
	a.breakDown(t, db.Database)
	says("failed", down, "restart it, or restore a backup", "try again")
	release, err := a.Core.Claims.Take(db.ID, core.Unrecovered)
	if err != nil {
		t.Fatal(err)
	}
	says("not settled", whole, "restart the appliance", "try again")
	release()
	repair(t, a, db.Database)
	if err := whole["restart"](); err != nil { // as the message said
		t.Errorf("restart: %v", err)
	}
	if err := a.Engine.Databases.Instances.Stop(context.WithoutCancel(ctx), db.ID); err != nil {
		t.Fatal(err)
	}
	says("unavailable", down, "is being brought back", "")
}
