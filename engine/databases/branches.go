package databases

import (
	"context"
	"slices"
	"strings"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// A branch is a database whose record names a parent: package recovery makes it and resets it. It has its own server,
// passwords, WAL and backups. A database with branches cannot be deleted, so a branch's parent is missing only if the
// branch was in the trash then.

// Branches returns the branches of a database, newest first.
func (s *Service) Branches(call *model.Call, id string, page core.Page) (core.List[View], error) {
	selection := core.Select(id, func(db model.Database) bool { return db.Parent == id })
	w, err := selection.Walk(s.core, call, model.ActionBranchList, page)
	if err != nil {
		return core.List[View]{}, err
	}
	if _, err := s.Database(call, id); err != nil {
		return core.List[View]{}, err
	}
	list, err := core.WalkRecords(s.core.Meta.View, w, (*meta.Tx).Databases, meta.ByOrganization, call.Organization, selection)
	if err != nil {
		return core.List[View]{}, err
	}
	return s.views(list)
}

// refuseBranched refuses the deletion of a database that has branches.
func refuseBranched(tx *meta.Tx, db model.Database) error {
	branches, err := tx.Databases().Where(func(d model.Database) bool { return d.Parent == db.ID && d.Trash == nil })
	if err != nil || len(branches) == 0 {
		return err
	}
	names := make([]string, len(branches))
	for i, b := range branches {
		names[i] = b.Name
	}
	slices.Sort(names)
	const shown = 10
	more := ""
	if len(names) > shown {
		names, more = names[:shown], " and others"
	}
	return model.Errorf(model.CodeConflict, "the database %s has branches: delete %s%s first", db.Name, strings.Join(names, ", "), more)
}

// The limits of a branch's time.
const (
	MinExpiry = time.Minute
	MaxExpiry = 3650 * 24 * time.Hour
)

// CheckExpiry checks when a branch is to expire, nil for never.
func (s *Service) CheckExpiry(field string, at *time.Time) error {
	if at == nil {
		return nil
	}
	if now := s.core.Clock(); at.Before(now.Add(MinExpiry-time.Second)) || at.After(now.Add(MaxExpiry)) {
		return model.Invalid(field, "must be from a minute to ten years from now, or never")
	}
	return nil
}

// ExpireBranch moves a branch whose time is over to the trash, and reports whether it did. One that is busy, or has
// branches itself, stays until a later call, without an error.
func (s *Service) ExpireBranch(ctx context.Context, db model.Database) (removed bool, err error) {
	call := s.core.System(model.ActionBranchExpire, db.Organization, DatabaseResource(db))
	_, err = s.delete(ctx, call, db.ID, func(now model.Database) error {
		if now.ExpiresAt == nil || !s.core.MayRemove(*now.ExpiresAt) { // it was extended meanwhile
			return model.Errorf(model.CodeConflict, "the branch has not expired")
		}
		return nil
	})
	if code := model.CodeOf(err); code == model.CodeConflict || code == model.CodeNotFound {
		s.core.Log.Debug("a branch that has expired stays", "database", db.ID, "reason", err)
		return false, nil
	}
	return err == nil, err
}

// BranchTree is a database with its branches, by name.
type BranchTree struct {
	model.Database
	Branches []BranchTree
}

// Tree returns the tree that a database is part of: its oldest ancestor that is not deleted, with all branches.
func (s *Service) Tree(call *model.Call, id string) (BranchTree, error) {
	db, err := s.Database(call, id)
	if err != nil {
		return BranchTree{}, err
	}
	all, err := s.databasesWhere(func(d model.Database) bool { return d.Trash == nil && d.Organization == call.Organization })
	if err != nil {
		return BranchTree{}, err
	}
	known, branches := map[string]model.Database{}, map[string][]model.Database{}
	for _, d := range all {
		d.Status, d.StatusReason = s.LiveStatus(d)
		known[d.ID] = d
		branches[d.Parent] = append(branches[d.Parent], d)
	}
	root := known[db.ID]
	for parent, found := known[root.Parent]; found; parent, found = known[root.Parent] {
		root = parent
	}
	return treeOf(root, branches), nil
}

func treeOf(db model.Database, branches map[string][]model.Database) BranchTree {
	tree := BranchTree{Database: db}
	for _, b := range branches[db.ID] {
		tree.Branches = append(tree.Branches, treeOf(b, branches))
	}
	slices.SortFunc(tree.Branches, func(a, b BranchTree) int { return strings.Compare(a.Name, b.Name) })
	return tree
}
