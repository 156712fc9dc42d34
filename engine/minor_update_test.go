package engine

import (
	"strconv"
	"testing"
	"time"

	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/internal/testenv"
)

// Advice says when a newer minor version than a server's is installed.
func TestMinorAdvice(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, c := a.createDatabase(t, "shop")
	older := strconv.Itoa(db.Major) + ".0"
	awaitAdvice := func(what, recorded string, shown bool) {
		t.Helper()
		testenv.Within(t, time.Minute, what, func() bool {
			if recorded != "" { // each time: samples record the server's own
				if err := a.Core.Meta.Update(func(tx *meta.Tx) error {
					return tx.Databases().Change(db.ID, func(d *model.Database) { d.Version = recorded })
				}); err != nil {
					t.Fatal(err)
				}
			}
			a.Insight.AdviseAll(t.Context(), 0)
			_, is := a.codes(t)["postgres_minor_outdated"]
			return is == shown
		})
	}
	awaitAdvice("no advice", "", false)
	awaitAdvice("advice about "+older, older, true)
	// Its maintenance window is open: the sweep restarts it.
	began := answer[time.Time](t, c, "select pg_postmaster_start_time()")
	restarted := func() bool {
		return !answer[time.Time](t, c, "select pg_postmaster_start_time()").Equal(began)
	}
	record := func(window model.MaintenanceWindow) model.Database {
		t.Helper()
		changed, err := meta.Value(a.Core.Meta.Update, func(tx *meta.Tx) (model.Database, error) {
			return tx.Databases().Update(db.ID, func(d *model.Database) error {
				d.Version, d.MaintenanceWindow = older, window
				return nil
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		return changed
	}
	at := time.Now().UTC().Add(2 * time.Hour)
	closed := model.MaintenanceWindow{Day: model.EveryDay, Start: at.Hour()*60 + at.Minute(), Minutes: 60}
	for _, window := range []model.MaintenanceWindow{{}, closed} {
		if err := a.Databases.UpdateMinor(t.Context(), record(window)); err != nil || restarted() {
			t.Errorf("outside of the window %s: restarted, %v", window, err)
		}
	}
	open := model.MaintenanceWindow{Day: model.EveryDay, Minutes: 24 * 60}
	release, err := a.Core.Claims.Take(db.ID, "a test")
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Databases.UpdateMinor(t.Context(), record(open)); err != nil || restarted() {
		t.Errorf("while something else is done with it: restarted, %v", err)
	}
	release()
	a.Core.Space.MeasureWith(func() (int64, error) { return 1 << 20, nil })
	if err := a.Databases.UpdateMinor(t.Context(), record(open)); err != nil || restarted() {
		t.Errorf("on a full disk: restarted, %v", err)
	}
	a.Core.Space.MeasureWith(nil)
	if err := a.Databases.UpdateMinor(t.Context(), record(open)); err != nil || !restarted() {
		t.Errorf("in the window: not restarted, %v", err)
	}
	if now, err := a.Databases.Record(db.ID); err != nil || now.Version == older {
		t.Errorf("the restarted server's version is %s, %v", now.Version, err)
	}
	began = answer[time.Time](t, c, "select pg_postmaster_start_time()")
	if err := a.Databases.UpdateMinor(t.Context(), record(open)); err != nil || restarted() {
		t.Errorf("restarted again for the same version, %v", err)
	}
	awaitAdvice("the end of the advice", "", false)
}
