package databases

import (
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// room is a Service with its own metadata, without PostgreSQL and without the
// services that build on it.
type room struct {
	*Service
	dir string
	now func() time.Time
}

// openRoom opens a room that uses the system clock and is closed when the test
// ends.
func openRoom(t *testing.T) *room {
	t.Helper()
	return openRoomAt(t, time.Now)
}

// openRoomAt is openRoom with another clock.
func openRoomAt(t *testing.T, now func() time.Time) *room {
	t.Helper()
	r := &room{dir: t.TempDir(), now: now}
	r.open(t)
	t.Cleanup(func() { r.close(t) })
	return r
}

func (r *room) open(t *testing.T) {
	t.Helper()
	db, err := meta.Open(filepath.Join(r.dir, core.MetadataFile))
	if err != nil {
		t.Fatal(err)
	}
	c, err := core.New(core.Config{
		DataDir: r.dir, Rates: core.DefaultRates(), AuditKeep: 10_000, Clock: r.now, Log: slog.New(slog.DiscardHandler), Version: "test",
	}, db)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Begin(); err != nil {
		t.Fatal(err)
	}
	r.Service = New(c)
}

func (r *room) close(t *testing.T) {
	t.Helper()
	r.core.Stop()
	r.core.Work.Wait()
	r.core.Audits.Close()
	if err := r.core.Meta.Close(); err != nil {
		t.Error(err)
	}
}

// restart closes the room and opens its metadata again.
func (r *room) restart(t *testing.T) {
	t.Helper()
	r.close(t)
	r.open(t)
}

// insert adds the record of an available database.
func (r *room) insert(t *testing.T, name string) model.Database {
	t.Helper()
	db := model.Database{
		ID: r.core.NewID(model.ResourceDatabase), Organization: "org_1", Project: "proj_1", Name: name, Status: model.DatabaseAvailable,
	}
	if err := r.core.Meta.Update(func(tx *meta.Tx) error { return tx.Databases().Insert(db) }); err != nil {
		t.Fatal(err)
	}
	return db
}
