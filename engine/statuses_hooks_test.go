package engine

import (
	"testing"

	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// Hooks for the tests over HTTP, which are in another package.

// StartForHTTP starts an engine, and returns it with its organization and project.
func StartForHTTP(t *testing.T) (e *Engine, organization, project string) {
	t.Helper()
	a := startEngine(t)
	return a.Engine, a.org, a.project
}

// PutInto sets the status of a database, as during an operation, until release is called. Unavailable and failed are
// set on its instance.
func (e *Engine) PutInto(t *testing.T, id string, status model.DatabaseStatus) (release func()) {
	t.Helper()
	switch status {
	case model.DatabaseAvailable:
		return func() {}
	case model.DatabaseUnavailable:
		e.Databases.HandleInstanceState(id, postgres.StateDown, "it is being brought back")
		return func() { e.Databases.HandleInstanceState(id, postgres.StateRunning, "") }
	case model.DatabaseFailed:
		e.Databases.HandleInstanceState(id, postgres.StateFailed, "it does not start")
		return func() { e.Databases.HandleInstanceState(id, postgres.StateRunning, "") }
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

// WithoutFiles adds the record of a database like another one, but without a data directory or an instance.
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
