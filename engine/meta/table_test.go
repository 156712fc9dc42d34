package meta

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"holdfast/engine/model"
)

func project(id, organization, name string) model.Project {
	return model.Project{ID: id, Organization: organization, Name: name}
}

func TestInsertAndFind(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	want := project("proj_1", "org_1", "default")
	update(t, db, func(tx *Tx) error { return tx.Projects().Insert(want) })
	view(t, db, func(tx *Tx) error {
		for how, find := range map[string]func() (model.Project, error){
			"Get":  func() (model.Project, error) { return tx.Projects().Get("proj_1") },
			"Find": func() (model.Project, error) { return tx.Projects().Find(ByName, Key("org_1", "default")) },
		} {
			got, err := find()
			if diff := gocmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("%s: %v %s", how, err, diff)
			}
		}
		for how, find := range map[string]func() (model.Project, error){
			"Get of another":         func() (model.Project, error) { return tx.Projects().Get("proj_2") },
			"Get of a prefix":        func() (model.Project, error) { return tx.Projects().Get("proj_") },
			"Get of nothing":         func() (model.Project, error) { return tx.Projects().Get("") },
			"Find of a prefix":       func() (model.Project, error) { return tx.Projects().Find(ByName, Key("org_1", "defaul")) },
			"Find elsewhere":         func() (model.Project, error) { return tx.Projects().Find(ByName, Key("org_2", "default")) },
			"Find of nothing":        func() (model.Project, error) { return tx.Projects().Find(ByName, nil) },
			"Find with another join": func() (model.Project, error) { return tx.Projects().Find(ByName, Key("org_1default")) },
		} {
			if _, err := find(); !errors.Is(err, ErrNotFound) {
				t.Errorf("%s: got %v, want ErrNotFound", how, err)
			}
		}
		return nil
	})
}

// TestConflictChangesNothing continues after the conflict within the same change, so that
// it is committed.
func TestConflictChangesNothing(t *testing.T) {
	t.Parallel()
	for name, conflict := range map[string]func(Table[model.Project]) error{
		"insert the same id":   func(p Table[model.Project]) error { return p.Insert(project("proj_1", "org_2", "other")) },
		"insert the same name": func(p Table[model.Project]) error { return p.Insert(project("proj_3", "org_1", "a")) },
		"update to the name of another": func(p Table[model.Project]) error {
			_, err := p.Update("proj_2", func(r *model.Project) error { r.Name = "a"; return nil })
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := openTest(t)
			update(t, db, func(tx *Tx) error {
				return errors.Join(tx.Projects().Insert(project("proj_1", "org_1", "a")), tx.Projects().Insert(project("proj_2", "org_1", "b")))
			})
			update(t, db, func(tx *Tx) error {
				if err := conflict(tx.Projects()); !errors.Is(err, ErrExists) {
					t.Errorf("got %v, want ErrExists", err)
				}
				return nil
			})
			view(t, db, func(tx *Tx) error {
				got, more, err := tx.Projects().Newest(ByOrganization, Key("org_1"), "", 10)
				want := []model.Project{project("proj_2", "org_1", "b"), project("proj_1", "org_1", "a")}
				if diff := gocmp.Diff(want, got); diff != "" || more || err != nil {
					t.Errorf("%v %v %s", more, err, diff)
				}
				if got, _, _ := tx.Projects().Newest(ByOrganization, Key("org_2"), "", 10); len(got) != 0 {
					t.Errorf("another organization has %v", got)
				}
				return nil
			})
		})
	}
}

func TestUpdateMovesIndexEntries(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	update(t, db, func(tx *Tx) error {
		return tx.Databases().Insert(model.Database{ID: "db_1", Organization: "org_1", Project: "proj_1", Name: "a"})
	})
	find := func(name string) error {
		return db.View(func(tx *Tx) error { _, err := tx.Databases().Find(ByName, Key("proj_1", name)); return err })
	}
	inTrash := func() (count int) {
		view(t, db, func(tx *Tx) error {
			records, _, err := tx.Databases().Newest(InTrash, Key("org_1"), "", 10)
			count = len(records)
			return err
		})
		return count
	}
	change := func(how func(*model.Database)) {
		update(t, db, func(tx *Tx) error {
			_, err := tx.Databases().Update("db_1", func(d *model.Database) error { how(d); return nil })
			return err
		})
	}
	change(func(d *model.Database) { d.Name = "b" })
	if find("b") != nil || !errors.Is(find("a"), ErrNotFound) || inTrash() != 0 {
		t.Error("a new name is not found, or the old one is")
	}
	change(func(d *model.Database) { d.Trash = &model.Trash{At: time.Now()} })
	if !errors.Is(find("b"), ErrNotFound) || inTrash() != 1 {
		t.Error("what lies in the trash still has its name, or is not found in the trash")
	}
	change(func(d *model.Database) { d.Trash = nil })
	if find("b") != nil || inTrash() != 0 {
		t.Error("what came back from the trash is not found")
	}
}

// TestUpdateInPlace modifies what the old record's slice points to.
func TestUpdateInPlace(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	update(t, db, func(tx *Tx) error {
		return tx.Keys().Insert(model.Key{ID: "key_1", Organization: "org_1", Hash: []byte("old")})
	})
	update(t, db, func(tx *Tx) error {
		_, err := tx.Keys().Update("key_1", func(k *model.Key) error { copy(k.Hash, "new"); return nil })
		return err
	})
	view(t, db, func(tx *Tx) error {
		if _, err := tx.Keys().Find(ByHash, []byte("old")); !errors.Is(err, ErrNotFound) {
			t.Errorf("the old hash gives %v", err)
		}
		_, err := tx.Keys().Find(ByHash, []byte("new"))
		return err
	})
}

func TestUpdateRefuses(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	update(t, db, func(tx *Tx) error { return tx.Projects().Insert(project("proj_1", "org_1", "a")) })
	stop := errors.New("stop")
	for name, tt := range map[string]struct {
		id     string
		change func(*model.Project) error
		want   func(error) bool
	}{
		"an absent record": {"proj_2", func(*model.Project) error { return nil }, func(err error) bool { return errors.Is(err, ErrNotFound) }},
		"a change's error": {"proj_1", func(p *model.Project) error { p.Name = "b"; return stop }, func(err error) bool { return errors.Is(err, stop) }},
		"another id": {
			"proj_1", func(p *model.Project) error { p.ID = "proj_2"; return nil },
			func(err error) bool { return err != nil && strings.Contains(err.Error(), "made its id") },
		},
	} {
		update(t, db, func(tx *Tx) error {
			if _, err := tx.Projects().Update(tt.id, tt.change); !tt.want(err) {
				t.Errorf("%s: got %v", name, err)
			}
			return nil
		})
	}
	view(t, db, func(tx *Tx) error { _, err := tx.Projects().Find(ByName, Key("org_1", "a")); return err })
}

func TestDelete(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	update(t, db, func(tx *Tx) error { return tx.Projects().Insert(project("proj_1", "org_1", "a")) })
	remove := func() error { return db.Update(func(tx *Tx) error { return tx.Projects().Delete("proj_1") }) }
	if err := remove(); err != nil {
		t.Fatal(err)
	}
	if err := remove(); !errors.Is(err, ErrNotFound) {
		t.Errorf("deleted twice: %v", err)
	}
	update(t, db, func(tx *Tx) error { return tx.Projects().Insert(project("proj_1", "org_1", "a")) })
}

func TestIndexToNowhereIsDamage(t *testing.T) {
	t.Parallel()
	db, err := Open(filepath.Join(t.TempDir(), "meta.db")) // not checked: it is damaged
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	update(t, db, func(tx *Tx) error {
		return errors.Join(
			tx.Projects().Insert(project("proj_1", "org_1", "a")),
			tx.Projects().bucket().Delete([]byte("proj_1")))
	})
	view(t, db, func(tx *Tx) error {
		_, findErr := tx.Projects().Find(ByName, Key("org_1", "a"))
		_, _, newestErr := tx.Projects().Newest(ByOrganization, Key("org_1"), "", 1)
		if !isCorrupt(findErr) || !isCorrupt(newestErr) {
			t.Errorf("Find gives %v, Newest %v, want a CorruptError", findErr, newestErr)
		}
		return nil
	})
	if check(db) == nil {
		t.Error("the checker finds nothing")
	}
}

func TestNewestPages(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	// The neighbours' keys have org_1 as a prefix or sort right next to it.
	organizations := []string{"org_", "org_0", "org_1", "org_1\x01", "org_1a", "org_1\U0010ffff", "org_2", "\U0010ffff"}
	const each = 7
	id := func(n int) string { return fmt.Sprintf("proj_%02d", n) }
	update(t, db, func(tx *Tx) error {
		for i, org := range organizations {
			for n := range each {
				if err := tx.Projects().Insert(project(id(n*len(organizations)+i), org, fmt.Sprint(n))); err != nil {
					return err
				}
			}
		}
		return nil
	})
	view(t, db, func(tx *Tx) error {
		for i, org := range organizations {
			for limit := 1; limit <= each+1; limit++ {
				var got []string
				for after, more := "", true; more; {
					var page []model.Project
					var err error
					if page, more, err = tx.Projects().Newest(ByOrganization, Key(org), after, limit); err != nil {
						return err
					}
					for _, p := range page {
						got = append(got, p.ID)
					}
					if len(page) > limit || more && len(page) < limit {
						t.Errorf("a page of %d has %d, and more: %v", limit, len(page), more)
					}
					if len(page) == 0 {
						break
					}
					after = page[len(page)-1].ID
				}
				var want []string
				for n := range each {
					want = append(want, id((each-1-n)*len(organizations)+i))
				}
				if diff := gocmp.Diff(want, got); diff != "" {
					t.Errorf("%q by %d: %s", org, limit, diff)
				}
			}
		}
		return nil
	})
}

// TestSearch reads matching records page by page. A search that matches nothing ends early and says where to continue.
func TestSearch(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	const all = 2*SearchBound + 500
	id := func(n int) string { return fmt.Sprintf("proj_%05d", n) }
	update(t, db, func(tx *Tx) error {
		for n := range all {
			if err := tx.Projects().Insert(project(id(n), "org_1", fmt.Sprint(n))); err != nil {
				return err
			}
		}
		return nil
	})
	for _, every := range []int{1, 3, 700, all + 1} {
		var got, want []string
		for n := all - 1; n >= 0; n-- {
			if (n+1)%every == 0 {
				want = append(want, id(n))
			}
		}
		pages := 0
		for after, more := "", true; more; pages++ {
			view(t, db, func(tx *Tx) error {
				examined := 0
				page, next, err := tx.Projects().Search(ByOrganization, Key("org_1"), after, 50, func(p model.Project) bool {
					examined++
					n, _ := strconv.Atoi(p.Name)
					return (n+1)%every == 0
				})
				for _, p := range page {
					got = append(got, p.ID)
				}
				if len(page) > 50 || examined > SearchBound || next != "" && examined < SearchBound && len(page) < 50 {
					t.Errorf("every %d: a page has %d of %d, and continues after %q", every, len(page), examined, next)
				}
				after, more = next, next != ""
				return err
			})
		}
		if !slices.Equal(got, want) {
			t.Errorf("every %d: %d records in %d pages, want %d", every, len(got), pages, len(want))
		}
	}
}

func TestNewestEdges(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	newest := func(org, after string, limit int) (ids []string, more bool) {
		view(t, db, func(tx *Tx) error {
			page, m, err := tx.Projects().Newest(ByOrganization, Key(org), after, limit)
			for _, p := range page {
				ids = append(ids, p.ID)
			}
			more = m
			return err
		})
		return ids, more
	}
	if ids, more := newest("org_1", "", 5); ids != nil || more {
		t.Errorf("an empty table has %v, %v", ids, more)
	}
	if ids, more := newest("org_1", "proj_1", 5); ids != nil || more {
		t.Errorf("an empty table has %v behind a cursor, %v", ids, more)
	}
	update(t, db, func(tx *Tx) error {
		return errors.Join(
			tx.Projects().Insert(project("proj_2", "org_1", "a")),
			tx.Projects().Insert(project("proj_4", "org_1", "b")),
			tx.Projects().Insert(project("proj_6", "org_1", "c")),
			tx.Projects().Insert(project("proj_3", "org_0", "a")),
			tx.Projects().Insert(project("proj_5", "org_2", "a")))
	})
	for _, tt := range []struct {
		organization, after string
		limit               int
		want                string
		more                bool
	}{
		{"org_1", "", 3, "proj_6 proj_4 proj_2", false},
		{"org_1", "", 2, "proj_6 proj_4", true},
		{"org_1", "", 0, "", true},
		{"org_1", "proj_6", 5, "proj_4 proj_2", false},
		{"org_1", "proj_5", 5, "proj_4 proj_2", false}, // another organization's: a position, not a record
		{"org_1", "proj_3", 5, "proj_2", false},        // no longer there
		{"org_1", "proj_2", 5, "", false},
		{"org_1", "proj_0", 5, "", false},
		{"org_1", "\x00", 5, "", false},
		{"org_1", "zzz", 5, "proj_6 proj_4 proj_2", false},
		{"org_1", "\xff\xff\xff", 5, "proj_6 proj_4 proj_2", false},
		{"org_2", "\xff\xff\xff", 5, "proj_5", false}, // after the last key of all
		{"org_0", "a", 5, "", false},                  // before the first key of all
		{"org", "", 5, "", false},
		{"", "", 5, "", false},
		{"org_1\x00proj_6", "", 5, "", false},
		{"zzz", "", 5, "", false},
		{"zzz", "zzz", 5, "", false},
	} {
		ids, more := newest(tt.organization, tt.after, tt.limit)
		if got := strings.Join(ids, " "); got != tt.want || more != tt.more {
			t.Errorf("%d of %q behind %q: got %q, %v, want %q, %v", tt.limit, tt.organization, tt.after, got, more, tt.want, tt.more)
		}
	}
}

func TestAllVisitsOldestFirst(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	stop := errors.New("stop")
	update(t, db, func(tx *Tx) error {
		return errors.Join(tx.Projects().Insert(project("proj_2", "o", "b")), tx.Projects().Insert(project("proj_1", "o", "a")))
	})
	view(t, db, func(tx *Tx) error {
		var ids []string
		err := tx.Projects().All(func(p model.Project) error { ids = append(ids, p.ID); return nil })
		if diff := gocmp.Diff([]string{"proj_1", "proj_2"}, ids); diff != "" || err != nil {
			t.Errorf("%v %s", err, diff)
		}
		count := 0
		err = tx.Projects().All(func(model.Project) error { count++; return stop })
		if !errors.Is(err, stop) || count != 1 {
			t.Errorf("visited %d, %v", count, err)
		}
		return nil
	})
}

// TestKeysAreApart: different parts must not join to the same key.
func TestKeysAreApart(t *testing.T) {
	t.Parallel()
	if bytes.Equal(Key("a", "bc"), Key("ab", "c")) {
		t.Error("the parts run together")
	}
}
