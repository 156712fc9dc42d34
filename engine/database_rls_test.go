package engine

import (
	"testing"

	"holdfast/engine/databases"
	"holdfast/engine/model"
)

func TestRLS(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, connection := a.createDatabase(t, "shop")
	conn := connect(t, connection)
	odd := `we"ird'; drop table orders; --`
	if _, err := conn.Exec(t.Context(), `create table orders (id int);
		create schema "S p"; create table "S p"."we""ird'; drop table orders; --" (id int);
		create table parts (id int) partition by range (id);
		create policy mine on orders for select to public using (id > 1)`); err != nil {
		t.Fatal(err)
	}
	tables, err := a.Databases.RLSGet(t.Context(), a.call(model.ActionRLSGet), db.ID, "")
	if err != nil || len(tables) != 3 {
		t.Fatalf("tables: %+v, %v", tables, err)
	}
	force := true
	table, err := a.Databases.RLSSet(t.Context(), a.call(model.ActionRLSSet), db.ID, databases.RLSChange{Schema: "S p", Table: odd, Enabled: true, Force: &force})
	if err != nil || !table.RLSEnabled || !table.RLSForced {
		t.Errorf("odd name: %+v, %v", table, err)
	}
	if table, err = a.Databases.RLSSet(t.Context(), a.call(model.ActionRLSSet), db.ID, databases.RLSChange{Table: "orders", Enabled: true}); err != nil {
		t.Fatal(err)
	}
	if !table.RLSEnabled || len(table.Policies) != 1 || *table.Policies[0].Using != "(id > 1)" || table.Policies[0].Roles[0] != "public" {
		t.Errorf("orders: %+v", table)
	}
	_, err = a.Databases.RLSSet(t.Context(), a.call(model.ActionRLSSet), db.ID, databases.RLSChange{Table: "nothing", Enabled: true})
	if model.CodeOf(err) != model.CodeNotFound {
		t.Errorf("unknown table: %v", err)
	}
}

func TestRLSOfABusyTable(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, connection := a.createDatabase(t, "shop")
	conn := connect(t, connection)
	for _, sql := range []string{
		"create table orders (id int)", "create policy mine on orders using (id > 1)",
		"begin", "lock table orders in access exclusive mode",
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	_, err := a.Databases.RLSSet(t.Context(), a.call(model.ActionRLSSet), db.ID, databases.RLSChange{Table: "orders", Enabled: true})
	if model.CodeOf(err) != model.CodeConflict {
		t.Errorf("busy table: %v", err)
	}
	_, err = a.Databases.RLSGet(t.Context(), a.call(model.ActionRLSGet), db.ID, "")
	if model.CodeOf(err) != model.CodeConflict {
		t.Errorf("overview with a busy table: %v", err)
	}
	if _, err := conn.Exec(t.Context(), "commit"); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Databases.RLSSet(t.Context(), a.call(model.ActionRLSSet), db.ID, databases.RLSChange{Table: "orders", Enabled: true}); err != nil {
		t.Errorf("free table: %v", err)
	}
}
