package engine

import (
	"testing"

	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// What the tests over HTTP, which are outside of this package, need of it.

// StartForHTTP starts an engine, and returns its organization and project.
func StartForHTTP(t *testing.T) (e *Engine, organization, project string) {
	t.Helper()
	a := startEngine(t)
	return a.Engine, a.org, a.project
}

// PutInto gives a database a status, as while an operation is under way, until
// release is called. Unavailable and failed are what its instance is seen to be.
func (e *Engine) PutInto(t *testing.T, id string, status model.DatabaseStatus) (release func()) {
	t.Helper()
	switch status {
	case model.DatabaseAvailable:
		return func() {}
	case model.DatabaseUnavailable:
		e.Databases.InstanceChanged(id, postgres.StateDown, "it is being brought back")
		return func() { e.Databases.InstanceChanged(id, postgres.StateRunning, "") }
	case model.DatabaseFailed:
		e.Databases.InstanceChanged(id, postgres.StateFailed, "it does not start")
		return func() { e.Databases.InstanceChanged(id, postgres.StateRunning, "") }
	}
	free, err := e.Core.Claims.Take(id, "a test")
	if err != nil {
		t.Fatal(err)
	}
	e.setStatus(t, id, status)
	return func() { e.setStatus(t, id, model.DatabaseAvailable); free() }
}

func (e *Engine) setStatus(t *testing.T, id string, status model.DatabaseStatus) {
	t.Helper()
	if err := e.Core.Meta.Update(func(tx *meta.Tx) error {
		_, err := tx.Databases().Update(id, func(d *model.Database) error { d.Status = status; return nil })
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// WithoutFiles adds the record of a database like another, that has no data
// directory and no instance.
func (e *Engine) WithoutFiles(t *testing.T, like, name string) (id string) {
	t.Helper()
	db, err := e.Databases.Record(like)
	if err != nil {
		t.Fatal(err)
	}
	owner, err := e.Databases.ConnectionOf(db, true)
	if err != nil {
		t.Fatal(err)
	}
	readOnly, err := e.Databases.ConnectionOf(db, false)
	if err != nil {
		t.Fatal(err)
	}
	db.ID, db.Name, db.Port = e.Core.NewID(model.ResourceDatabase), name, 1
	e.sealPasswords(&db, owner.Password, readOnly.Password)
	if err := e.Core.Meta.Update(func(tx *meta.Tx) error { return tx.Databases().Insert(db) }); err != nil {
		t.Fatal(err)
	}
	return db.ID
}
