package meta

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"holdfast/engine/model"
)

// TestTablesKeepToTheModel compares a table with a map under random changes, including
// changes that continue after a conflict.
func TestTablesKeepToTheModel(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	run := 0
	rapid.Check(t, func(t *rapid.T) {
		run++
		db, err := Open(filepath.Join(dir, fmt.Sprint(run)))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		db.bolt.NoSync = true // only the stored content matters here
		m := &tableModel{db: db, want: map[string]model.Database{}}
		t.Repeat(map[string]func(*rapid.T){
			"insert": m.insert, "update": m.update, "delete": m.delete, "list": m.list, "find": m.find,
			"": func(t *rapid.T) {
				if err := check(db); err != nil {
					t.Fatal(err)
				}
			},
		})
	})
}

type tableModel struct {
	db   *DB
	want map[string]model.Database
}

func drawDatabase(t *rapid.T) model.Database {
	d := model.Database{
		ID:           fmt.Sprintf("db_%02d", rapid.IntRange(0, 12).Draw(t, "id")),
		Organization: rapid.SampledFrom([]string{"org_1", "org_2"}).Draw(t, "organization"),
		Project:      rapid.SampledFrom([]string{"proj_1", "proj_2"}).Draw(t, "project"),
		Name:         rapid.SampledFrom([]string{"a", "aa", "b"}).Draw(t, "name"),
	}
	if rapid.Bool().Draw(t, "in the trash") {
		d.Trash = &model.Trash{}
	}
	return d
}

// taken reports whether another database that is not in the trash has d's name.
func (m *tableModel) taken(d model.Database) bool {
	for id, other := range m.want {
		if id != d.ID && d.Trash == nil && other.Trash == nil && other.Project == d.Project && other.Name == d.Name {
			return true
		}
	}
	return false
}

func (m *tableModel) expect(t *rapid.T, want error, change func(Table[model.Database]) error) {
	if err := m.db.Update(func(tx *Tx) error {
		if err := change(tx.Databases()); !errors.Is(err, want) || (err == nil) != (want == nil) {
			t.Fatalf("got %v, want %v", err, want)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

func (m *tableModel) insert(t *rapid.T) {
	d := drawDatabase(t)
	var want error
	if _, there := m.want[d.ID]; there || m.taken(d) {
		want = ErrExists
	} else {
		m.want[d.ID] = d
	}
	m.expect(t, want, func(table Table[model.Database]) error { return table.Insert(d) })
}

func (m *tableModel) update(t *rapid.T) {
	d := drawDatabase(t)
	var want error
	if _, there := m.want[d.ID]; !there {
		want = ErrNotFound
	} else if m.taken(d) {
		want = ErrExists
	} else {
		m.want[d.ID] = d
	}
	m.expect(t, want, func(table Table[model.Database]) error {
		_, err := table.Update(d.ID, func(r *model.Database) error { *r = d; return nil })
		return err
	})
}

func (m *tableModel) delete(t *rapid.T) {
	id := drawDatabase(t).ID
	var want error
	if _, there := m.want[id]; !there {
		want = ErrNotFound
	}
	delete(m.want, id)
	m.expect(t, want, func(table Table[model.Database]) error { return table.Delete(id) })
}

func (m *tableModel) find(t *rapid.T) {
	d := drawDatabase(t)
	err := m.db.ViewFlushed(func(tx *Tx) error {
		got, err := tx.Databases().Find(ByName, Key(d.Project, d.Name))
		d.ID, d.Trash = "", nil // whichever record has the name
		if m.taken(d) != (err == nil) {
			t.Fatalf("%s of %s: %v", d.Name, d.Project, err)
		}
		if err == nil && gocmp.Diff(m.want[got.ID], got) != "" {
			t.Fatalf("found %v, want %v", got, m.want[got.ID])
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (m *tableModel) list(t *rapid.T) {
	like := drawDatabase(t)
	index := ByOrganization
	if like.Trash != nil {
		index = InTrash
	}
	after := rapid.SampledFrom([]string{"", like.ID}).Draw(t, "after")
	limit := rapid.IntRange(1, 6).Draw(t, "limit")
	want := slices.SortedFunc(maps.Values(m.want), func(a, b model.Database) int { return cmp.Compare(b.ID, a.ID) })
	want = slices.DeleteFunc(want, func(d model.Database) bool {
		return d.Organization != like.Organization || (d.Trash == nil) != (like.Trash == nil) || after != "" && d.ID >= after
	})
	if err := m.db.ViewFlushed(func(tx *Tx) error {
		got, more, err := tx.Databases().Newest(index, Key(like.Organization), after, limit)
		if more != (len(want) > limit) {
			t.Fatalf("more is %v, with %d of %d", more, limit, len(want))
		}
		want = want[:min(limit, len(want))]
		if diff := gocmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}
