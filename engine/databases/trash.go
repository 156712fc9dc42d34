package databases

import (
	"context"
	"errors"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// TrashList returns the deleted databases of the call's organization that are still
// in the trash and match the filter, by when they were deleted, newest first.
func (s *Service) TrashList(call *model.Call, filter core.Filter, page core.Page) (core.List[model.Database], error) {
	selection := core.Select(filter, func(db model.Database) bool {
		return db.Trash != nil && filter.Admits(db.Project, db.Name, db.Trash.At)
	})
	w, err := selection.Walk(s.core, call, model.ActionTrashList, page)
	if err != nil {
		return core.List[model.Database]{}, err
	}
	return core.WalkRecords(s.core.Meta.View, w, (*meta.Tx).Databases, meta.InTrash, call.Organization, selection)
}

// TrashPurge permanently removes a deleted database with its backups.
func (s *Service) TrashPurge(call *model.Call, id string) error {
	call.Resource = model.Resource{Type: model.ResourceDatabase, ID: id}
	db, err := meta.Value(s.core.Meta.View, func(tx *meta.Tx) (model.Database, error) { return trashedDatabase(tx, call, id) })
	if err != nil {
		return err
	}
	call.Resource = DatabaseResource(db)
	return s.purgeClaimed(call, db, anyTrash)
}

// trashedDatabase returns a deleted database of the call's organization.
func trashedDatabase(tx *meta.Tx, call *model.Call, id string) (model.Database, error) {
	db, err := tx.Databases().Get(id)
	if errors.Is(err, meta.ErrNotFound) || err == nil && (db.Trash == nil || db.Organization != call.Organization) {
		return model.Database{}, notInTrash(id)
	}
	return db, err
}

func notInTrash(id string) error {
	return model.Errorf(model.CodeNotFound, "no database %q in the trash; `holdfast trash list` shows what is", id)
}

// TrashRestore restores a deleted database with its backups and its connection
// URL.
func (s *Service) TrashRestore(ctx context.Context, call *model.Call, id string) (model.Database, error) {
	if err := s.core.ClaimIdempotencyKey(call); err != nil {
		return model.Database{}, err
	}
	call.Resource = model.Resource{Type: model.ResourceDatabase, ID: id}
	db, err := meta.Value(s.core.Meta.View, func(tx *meta.Tx) (model.Database, error) { return trashedDatabase(tx, call, id) })
	if err != nil {
		return model.Database{}, err
	}
	release, err := s.core.Claims.Take(id, "another operation")
	if err != nil {
		return model.Database{}, err
	}
	defer func() { release() }()
	err = s.core.Change(call, func(tx *meta.Tx) error {
		if err := s.core.RenewAuthority(tx, call); err != nil {
			return err
		}
		found, err := trashedDatabase(tx, call, id) // read again: it may have changed before the claim
		if err == nil && s.TrashExpired(*found.Trash) {
			err = notInTrash(id)
		}
		if err != nil {
			return err
		}
		return s.core.WithinPlan(tx, call.Organization, func() error {
			db, err = tx.Databases().Update(id, func(d *model.Database) error {
				d.Trash, d.UpdatedAt = nil, s.core.Clock()
				if d.ExpiresAt != nil && !d.UpdatedAt.Before(*d.ExpiresAt) {
					d.ExpiresAt = nil // else the next sweep would delete the branch again
				}
				return nil
			})
			return core.NameTaken(err, model.ResourceDatabase, found.Name)
		})
	})
	if err != nil || !s.Started() {
		return db, err
	}
	if db.Rebuild {
		kept := release
		release = func() {}
		s.core.Background(func(ctx context.Context) {
			defer kept()
			s.startAtBoot(ctx, id)
		})
		return db, nil
	}
	s.startRecorded(context.WithoutCancel(ctx), db) // a start that ended with the request could leave it failed
	s.backups.BackUpIfOwed(db)                      // its deletion cancelled the one that was to follow a restore
	return db, nil
}

// TrashExpired reports whether a deleted database may be removed: its time in the
// trash is over, or its removal has begun.
func (s *Service) TrashExpired(t model.Trash) bool {
	return !t.Until.After(t.At) || s.core.MayRemove(t.Until)
}

// EmptyTrash permanently removes the deleted databases of the call's organization
// and returns how many there were.
func (s *Service) EmptyTrash(call *model.Call) (int, error) {
	deleted, err := s.databasesWhere(func(db model.Database) bool { return db.Trash != nil && db.Organization == call.Organization })
	if err != nil {
		return 0, err
	}
	for i, db := range deleted {
		if err := s.purgeClaimed(core.PartOf(call, DatabaseResource(db)), db, anyTrash); err != nil {
			return i, err
		}
	}
	return len(deleted), nil
}

// anyTrash lets what is in the trash be purged before its time is over.
func anyTrash(model.Trash) bool { return true }

func (s *Service) purgeClaimed(call *model.Call, db model.Database, may func(model.Trash) bool) error {
	release, err := s.core.Claims.Take(db.ID, "the removal from the trash")
	if err != nil {
		return err
	}
	defer release()
	if err := s.core.CheckAuthority(call); err != nil {
		return err
	}
	return s.purge(call, db, may)
}

// ExpireTrash removes a deleted database whose time in the trash is over, unless it was brought back and deleted again since
// db was read.
func (s *Service) ExpireTrash(db model.Database) error {
	return s.purgeClaimed(s.core.System(model.ActionTrashExpire, db.Organization, DatabaseResource(db)), db, s.TrashExpired)
}
