package engine

import (
	"strings"
	"testing"

	"holdfast/engine/model"
	"holdfast/engine/postgres/postgrestest"
)

// A cutover is refused while the source has transactions that have not ended: what they commit after it would be lost. It
// waits a moment for those that end by themselves.
func TestImportCutoverWithOpenTransactions(t *testing.T) {
	t.Parallel()
	o := newRunning(t, postgrestest.Binaries(t), running, func(s map[string]string) { s["max_prepared_transactions"] = "5" })
	a := startMajors(t)
	record := a.follow(t, o, "")
	writer := o.Superuser(t, "app")
	run := func(sql string) {
		t.Helper()
		if _, err := writer.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(says string) {
		t.Helper()
		if _, err := a.cutOver(t, record.ID); model.CodeOf(err) != model.CodeConflict || !strings.Contains(err.Error(), says) {
			t.Fatalf("want %s: %v", says, err)
		}
		a.awaitFollowing(t, record.ID)
	}
	const insert = "insert into public.customers select n, 'late' from generate_series(1001, 1002) n"
	run("set application_name = 'nightly job'")
	run("begin")
	run(insert)
	refused(`"nightly job"`)
	run("prepare transaction 'it''s open'")
	refused(`the prepared transaction 'it''s open'`)
	run("commit prepared 'it''s open'")
	_, c := a.mustCutOver(t, o, record.ID)
	if got := answer[int](t, c, "select count(*) from customers"); got != 102 {
		t.Errorf("the new database has %d customers", got)
	}
	a.checkTidy(t)
}
