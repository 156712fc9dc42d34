package engine

import (
	"slices"
	"testing"

	"holdfast/engine/model"
	"holdfast/internal/testenv"
)

// A setting that only a newer major version knows is left out on an older one, to which an undo leads: its server starts, the
// database says so, and the setting is back with the version. Nobody can make one that the present version does not know.
func TestSettingOfAnotherMajor(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	a := startUpgradable(t, verifying(t))
	db, c := a.onMajor(t, "shop", "15")
	a.upgraded(t, db.ID, "18", false, model.OperationCompleted)
	const name = "io_method"
	set := func() error {
		_, err := a.Databases.ChangeSettings(t.Context(), a.call(model.ActionDatabaseSettings), db.ID, map[string]string{name: "sync"})
		return err
	}
	if err := set(); err != nil {
		t.Fatal(err)
	}
	leftOut := func(want ...string) {
		t.Helper()
		view, err := a.Databases.Get(a.call(model.ActionDatabaseGet), db.ID)
		if err != nil || view.Status != model.DatabaseAvailable || !slices.Equal(view.LeftOut, want) {
			t.Errorf("%s %s, left out %v, %v; want %v", view.Status, view.StatusReason, view.LeftOut, err, want)
		}
	}
	leftOut()
	a.undo(t, db.ID)
	a.wantUpgraded(t, db.ID, c, 15, "1")
	leftOut(name)
	if err := set(); model.CodeOf(err) != model.CodeValidation {
		t.Errorf("set on 15: %v", err)
	}
	leftOut(name)
	a.undo(t, db.ID) // of the undo
	a.wantUpgraded(t, db.ID, c, 18, "1")
	leftOut()
	if got := answer[string](t, c, "show "+name); got != "sync" {
		t.Errorf("%s is %s", name, got)
	}
}
