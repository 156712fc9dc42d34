package engine

import (
	"testing"

	"holdfast/engine/advice"
	"holdfast/engine/model"
)

// The estimates of what holds no rows: nearly nothing of a new index, most of one whose rows were deleted, nothing known
// of other kinds and before ANALYZE.
func TestIndexBloat(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, c := a.createDatabase(t, "shop")
	owner := connect(t, c)
	do := func(sql string) {
		t.Helper()
		if _, err := owner.PgConn().Exec(t.Context(), sql).ReadAll(); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	do(`create table items (id int primary key, name text, note text, at point);
		insert into items select n, 'item ' || md5(n::text), nullif('note ' || n, 'note ' || n % 2), point(n, n) from generate_series(1, 60000) n;
		create index on items (name); create index on items (note) include (id); create index on items (lower(name)) where id % 2 = 0;
		create index on items using gist (at); create index on items using brin (id);
		create index packed on items (name) with (fillfactor = 50);
		create table empty (id int primary key)`)
	indexes := func() map[string]advice.IndexSize {
		t.Helper()
		_, all, err := a.Insight.Relations(t.Context(), a.call(model.ActionRelationList), db.ID, "")
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]advice.IndexSize{}
		for _, x := range all {
			found[x.Name] = x
		}
		return found
	}
	if x := indexes()["items_name_idx"]; x.Bloat != nil {
		t.Errorf("before ANALYZE: %d", *x.Bloat)
	}
	known := []string{"items_pkey", "items_name_idx", "items_note_id_idx", "items_lower_idx", "packed"}
	share := func(least, most float64) {
		t.Helper()
		found := indexes()
		for _, name := range known {
			x := found[name]
			if x.Bloat == nil {
				t.Errorf("%s: not known", name)
			} else if s := float64(*x.Bloat) / float64(x.Size); s < least || s > most {
				t.Errorf("%s: %d of %d bytes", name, *x.Bloat, x.Size)
			}
		}
		for _, name := range []string{"items_at_idx", "items_id_idx"} {
			if x, listed := found[name]; !listed || x.Bloat != nil {
				t.Errorf("%s: %+v", name, x)
			}
		}
		if x := found["empty_pkey"]; x.Bloat == nil || *x.Bloat != 0 {
			t.Errorf("of an empty table: %+v", x)
		}
	}
	do("vacuum analyze items")
	do("vacuum analyze empty")
	share(0, 0.15)
	do("delete from items where id % 10 <> 0")
	do("vacuum analyze items")
	share(0.7, 1)
	do("reindex table items")
	share(0, 0.25)
}
