package engine

import (
	"testing"
	"time"

	"holdfast/engine/postgres/postgrestest"
	"holdfast/internal/testenv"
)

// A materialized view that takes more than the server has is an error of that view: neither a cutover nor an import fails.
func TestImportOfAViewThatTakesTooMuch(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"53400", "53200", "53100"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			o := newRunning(t, postgrestest.Binaries(t), `create table secrets (id int primary key); alter table secrets enable row level security; alter table secrets force row level security;
				create function greedy() returns int language plpgsql as $$ begin
					if current_database() <> 'app' then raise 'too much' using errcode = '`+code+`'; end if; return 1; end $$;
				create materialized view heavy as select greedy()`)
			a := startMajors(t)
			record := a.follow(t, o, "")
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, _ = a.cutOver(t, record.ID)
			}()
			testenv.Within(t, time.Minute, "the end of the cutover", func() bool {
				select {
				case <-done:
					return true
				default:
					return false
				}
			})
			record = a.awaitImport(t, record.ID)
			if len(record.Errors) != 1 || record.Errors[0].Object != "MATERIALIZED VIEW DATA public.heavy" || record.Errors[0].SQLState != code {
				t.Errorf("the errors are %+v", record.Errors)
			}
		})
	}
}
