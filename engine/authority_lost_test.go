package engine

import (
	"testing"

	"holdfast/engine/access"
	"holdfast/engine/databases"
	"holdfast/engine/model"
	"holdfast/engine/recovery"
)

// TestLostAuthorityBeginsNothing: a request may wait before it begins, for a program that is fetched, an archive or another
// operation. If its key was revoked meanwhile, it gets no database, and changes and removes none.
func TestLostAuthorityBeginsNothing(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, _ := a.createDatabase(t, "shop")
	done := a.backUp(t, db.ID)
	_, key, err := a.Access.KeyCreate(a.operatorCall(model.ActionKeyCreate), access.NewKey{Name: "lost", Scopes: model.Scopes(), AllowDangerous: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Access.KeyRevoke(a.operatorCall(model.ActionKeyRevoke), key.ID); err != nil {
		t.Fatal(err)
	}
	lost := func(action model.Action) *model.Call {
		call := a.call(action)
		call.Key, call.Actor.ID = &key, key.ID
		return call
	}
	for name, act := range map[string]func() error{
		"create": func() error {
			_, _, err := a.Databases.Create(t.Context(), lost(model.ActionDatabaseCreate), databases.NewDatabase{Project: a.project, Name: "other"})
			return err
		},
		"branch": func() error {
			_, err := a.Recovery.BranchCreate(t.Context(), lost(model.ActionBranchCreate), db.ID, recovery.NewBranch{Name: "branch"})
			return err
		},
		"restore": func() error {
			_, err := a.Recovery.BackupRestore(lost(model.ActionBackupRestore), db.ID, done.ID, nil)
			return err
		},
		"restore as another": func() error {
			_, err := a.Recovery.BackupRestore(lost(model.ActionBackupRestore), db.ID, done.ID, new("copy"))
			return err
		},
		"delete a backup": func() error { return a.Recovery.BackupDelete(lost(model.ActionBackupDelete), db.ID, done.ID) },
		"delete": func() error {
			var err error
			a.keepsBackup(t, db.ID, func() { _, err = a.Databases.Delete(t.Context(), lost(model.ActionDatabaseDelete), db.ID) })
			return err
		},
	} {
		if err := act(); model.CodeOf(err) != model.CodeUnauthorized {
			t.Errorf("%s: %v", name, err)
		}
	}
	kept, trashed := a.databases(t)
	if len(kept) != 1 || kept[0].Status != model.DatabaseAvailable || len(trashed) > 0 {
		t.Errorf("databases %+v, in the trash %+v", kept, trashed)
	}
	if _, err := a.Recovery.BackupGet(a.call(model.ActionBackupGet), db.ID, done.ID); err != nil {
		t.Errorf("the backup: %v", err)
	}
}
