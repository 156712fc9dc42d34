package engine

import (
	"strings"
	"testing"
	"time"

	"holdfast/engine/advice"
	"holdfast/engine/model"
)

// TestStatementTextsAreBounded: long statements, which any role can send, do not fill the disk or slow down those who look at the statistics.
func TestStatementTextsAreBounded(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, _ := a.createDatabase(t, "shop")
	record, err := a.Databases.Record(db.ID)
	if err != nil {
		t.Fatal(err)
	}
	since := func() time.Time {
		t.Helper()
		found, err := a.Insight.Statements(t.Context(), a.call(model.ActionStatementList), db.ID, advice.ByTotalTime)
		if err != nil || !found.Enabled || found.Since == nil {
			t.Fatalf("%+v, %v", found, err)
		}
		return *found.Since
	}
	began := since()
	long := "/*" + strings.Repeat("x", 4<<20) + "*/ 1"
	send := func(from, to int) {
		t.Helper()
		for n := from; n < to; n++ {
			runSQL(t, connectionDetails(t, a, db.ID), "select "+strings.Repeat("1, ", n)+long)
		}
		a.Databases.SampleOne(t.Context(), record)
	}
	if send(0, 4); !since().Equal(began) {
		t.Error("16 MB are too much")
	}
	if send(4, 10); since().Equal(began) {
		t.Error("40 MB are not too much")
	}
}
