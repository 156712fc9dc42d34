package databases

import (
	"testing"
	"time"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// TestLostAuthorityGetsNoDatabase: who loses the authority while a database is made does not get it, nor its password.
func TestLostAuthorityGetsNoDatabase(t *testing.T) {
	t.Parallel()
	r := openRoom(t)
	db := r.insert(t, "shop")
	now := r.now()
	key := model.Key{ID: "key_1", Organization: db.Organization, Hash: []byte("key_1"), Scopes: model.Scopes()}
	if err := r.core.Meta.Update(func(tx *meta.Tx) error {
		revoked := key
		revoked.RevokedAt = &now
		if err := tx.Keys().Insert(revoked); err != nil {
			return err
		}
		return tx.Databases().Change(db.ID, func(d *model.Database) { d.Status = model.DatabaseCreating })
	}); err != nil {
		t.Fatal(err)
	}
	call := &model.Call{
		Operation: model.OperationFor(model.ActionDatabaseCreate), Organization: db.Organization, Key: &key,
		Actor: model.Actor{Type: model.ActorKey, ID: key.ID},
	}
	if err := r.publishDatabase(call, &db); model.CodeOf(err) != model.CodeUnauthorized {
		t.Errorf("a key that was revoked: %v", err)
	}
	if kept, err := r.Record(db.ID); err != nil || kept.Status != model.DatabaseCreating {
		t.Errorf("%+v, %v", kept, err)
	}
	system := r.core.System(model.ActionDatabaseCreate, db.Organization, DatabaseResource(db))
	if err := r.publishDatabase(system, &db); err != nil || db.Status != model.DatabaseAvailable {
		t.Errorf("by the appliance: %+v, %v", db, err)
	}
}

// TestLostAuthorityHoldsNothing: a request that waited for a claim holds neither the database nor its backups once its
// caller has lost the authority.
func TestLostAuthorityHoldsNothing(t *testing.T) {
	t.Parallel()
	r := openRoom(t)
	db := r.insert(t, "shop")
	call := &model.Call{
		Operation: model.OperationFor(model.ActionDatabaseRestart), Organization: db.Organization,
		Key: &model.Key{ID: "key_gone"}, Actor: model.Actor{Type: model.ActorKey, ID: "key_gone"},
	}
	if _, _, err := r.ClaimExclusively(call, db.ID, "a restart"); model.CodeOf(err) != model.CodeUnauthorized {
		t.Errorf("a claim: %v", err)
	}
	if _, err := r.claimBackupsFor(call, db.ID, "a restart"); model.CodeOf(err) != model.CodeUnauthorized {
		t.Errorf("a claim of the backups: %v", err)
	}
	if _, err := r.Delete(t.Context(), call, db.ID); model.CodeOf(err) != model.CodeUnauthorized {
		t.Errorf("a deletion: %v", err)
	}
	trashed := r.insert(t, "old")
	if err := r.core.Meta.Update(func(tx *meta.Tx) error {
		return tx.Databases().Change(trashed.ID, func(d *model.Database) {
			d.Trash = &model.Trash{At: r.now(), Until: r.now().Add(24 * time.Hour)}
		})
	}); err != nil {
		t.Fatal(err)
	}
	if err := r.TrashPurge(call, trashed.ID); model.CodeOf(err) != model.CodeUnauthorized {
		t.Errorf("a removal from the trash: %v", err)
	}
	if _, err := r.TrashRestore(t.Context(), call, trashed.ID); model.CodeOf(err) != model.CodeUnauthorized {
		t.Errorf("a return from the trash: %v", err)
	}
	if held := r.core.Claims.UnderWay(); len(held) > 0 {
		t.Errorf("still claimed: %q", held)
	}
}
