package importer

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"holdfast/engine/model"
)

func TestAccountProgress(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	a := NewAccount(model.Import{}, func() time.Time { return now })
	a.Enter(model.ImportCopying, "data")
	a.plan(1000)
	transfer := &transfer{table: table{rows: 100}, weight: 500}
	a.start(transfer)
	for range 50 {
		_, _ = transfer.Write([]byte("123456789\n"))
	}
	now = now.Add(2 * time.Second)
	if got := a.Snapshot(); got.Progress != 24 || got.RowsCopied != 50 || got.BytesCopied != 500 || got.SecondsLeft != nil {
		t.Errorf("half of half: %d%%, %d rows, %d bytes, %v s left", got.Progress, got.RowsCopied, got.BytesCopied, got.SecondsLeft)
	}
	now = now.Add(8 * time.Second)
	if got := a.Snapshot(); got.SecondsLeft == nil || *got.SecondsLeft != 30 {
		t.Errorf("a quarter in 10 s: %v s left", got.SecondsLeft)
	}
	a.finish(transfer, false) // rolled back: nothing was copied
	if got := a.Snapshot(); got.RowsCopied != 0 || got.Progress != 0 || got.SecondsLeft != nil {
		t.Errorf("after a failure: %+v", got)
	}
	a.addDone(1000)
	if got := a.Snapshot(); got.Progress != 99 {
		t.Errorf("all copied: %d%%", got.Progress)
	}
	a.Enter(model.ImportVerifying, "rows")
	if got := a.Snapshot(); got.Progress != 99 || got.SecondsLeft != nil {
		t.Errorf("while verifying: %d%%", got.Progress)
	}
}

func TestAccountIsBounded(t *testing.T) {
	t.Parallel()
	a := NewAccount(model.Import{}, time.Now)
	for n := range 3 * mostLines {
		a.flaw(fmt.Sprintf("TABLE x%d", n), &pgconn.PgError{Code: "42P01", Message: "it is\nnot there", Detail: "really"})
		a.Say(model.ImportInfo, "so it is")
	}
	got := a.Snapshot()
	if len(got.Errors) != mostFlaws || got.ErrorsBeyond != 3*mostLines-mostFlaws || len(got.Log) != mostLines {
		t.Errorf("%d errors, %d beyond, %d lines", len(got.Errors), got.ErrorsBeyond, len(got.Log))
	}
	if got.Errors[0] != (model.ImportFlaw{Object: "TABLE x0", SQLState: "42P01", Message: "it is not there (really)"}) {
		t.Errorf("a flaw: %+v", got.Errors[0])
	}
	a = NewAccount(model.Import{}, time.Now)
	long := strings.Repeat("long ", 1000)
	for n := range 3 * mostLines {
		a.flaw(long, errors.New(fmt.Sprint(n)+long))
		a.Say(model.ImportInfo, long)
	}
	a.missing(slices.Repeat([]string{long}, 3*mostLines))
	got = a.Snapshot()
	if text, err := json.Marshal(got); err != nil || len(text) > 3*mostText || len(got.Errors) == 0 || got.ErrorsBeyond == 0 ||
		!strings.Contains(got.Log[0].Message, "full") {
		t.Errorf("%d bytes of long texts: %v", len(text), err)
	}
}

// The last lines of a log are kept, also when it is full, and after a restart.
func TestAccountKeepsTheEndOfTheLog(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"short", strings.Repeat("long ", 1000)} {
		a := NewAccount(model.Import{}, time.Now)
		for range 2 * mostLines {
			a.Say(model.ImportInfo, text)
		}
		a = NewAccount(a.Snapshot(), time.Now)
		a.Say(model.ImportWarning, "the slot remains")
		got := a.Snapshot().Log
		if end := got[len(got)-1].Message; end != "the slot remains" || !strings.Contains(got[0].Message, "full") || len(got) > mostLines {
			t.Errorf("%d lines end with %s and begin with %s", len(got), end, got[0].Message)
		}
	}
}

// A flaw that an attempt found again, also after a restart, is one flaw.
func TestAccountRepeatsNoFlaw(t *testing.T) {
	t.Parallel()
	a := NewAccount(model.Import{}, time.Now)
	a.flaw("TABLE x", errors.New("not there"))
	a = NewAccount(a.Snapshot(), time.Now)
	a.flaw("TABLE x", errors.New("not there"))
	if got := a.Snapshot().Errors; len(got) != 1 {
		t.Errorf("the flaws are %+v", got)
	}
}
