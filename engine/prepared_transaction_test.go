package engine

import (
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestPreparedTransactions has the owner use two-phase commits, and forget one.
func TestPreparedTransactions(t *testing.T) {
	t.Parallel()
	a := startAdvised(t, nil)
	set := func(value string) {
		t.Helper()
		if err := a.changeSettings(t, a.db.ID, true, "max_prepared_transactions="+value); err != nil {
			t.Fatal(err)
		}
		a.owner = connect(t, a.connection(t))
	}
	set("5")
	a.gone("prepared_transaction")
	a.sql("create table accounts (n int)")
	prepare := func(gid string) {
		t.Helper()
		for _, sql := range []string{"begin", "insert into accounts values (1)", "prepare transaction " + gid} {
			if _, err := a.owner.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
				t.Fatalf("%s: %v", sql, err)
			}
		}
	}
	prepare("'it''s forgotten'")
	r := a.one("prepared_transaction")
	if r.Evidence["gid"] != "it's forgotten" {
		t.Errorf("%+v", r)
	}
	a.sql(r.SQL)
	a.gone("prepared_transaction")

	prepare("'kept'")
	set("0") // it has its place until it is ended
	a.one("prepared_transaction")
	a.sql("commit prepared 'kept'")
	set("0")
	if n := answer[int](t, a.connection(t), "select count(*) from accounts"); n != 1 {
		t.Errorf("%d rows", n)
	}
	if value := answer[string](t, a.connection(t), "show max_prepared_transactions"); value != "0" {
		t.Errorf("max_prepared_transactions is %s", value)
	}
}
