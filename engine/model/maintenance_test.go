package model_test

import (
	"testing"
	"time"

	"holdfast/engine/model"
)

func TestMaintenanceWindow(t *testing.T) {
	t.Parallel()
	daily, err := model.NewMaintenanceWindow("maintenance_window", model.EveryDay, "23:30", 60)
	if err != nil {
		t.Fatal(err)
	}
	weekly, err := model.NewMaintenanceWindow("maintenance_window", "sunday", "03:00", 120)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		window   model.MaintenanceWindow
		at, next string
	}{
		{daily, "2026-11-23T12:00:00Z", "2026-11-23T23:30:00Z"}, // a Monday
		{daily, "2026-11-23T23:30:00Z", "2026-11-23T23:30:00Z"},
		{daily, "2026-11-24T00:29:59Z", "2026-11-24T00:29:59Z"}, // open since yesterday
		{daily, "2026-11-24T00:30:00Z", "2026-11-24T23:30:00Z"},
		{weekly, "2026-11-23T03:30:00Z", "2026-11-29T03:00:00Z"},
		{weekly, "2026-11-29T04:59:00Z", "2026-11-29T04:59:00Z"},
		{weekly, "2026-11-29T05:00:00Z", "2026-12-06T03:00:00Z"},
		{model.MaintenanceWindow{}, "2026-11-29T05:00:00Z", "2026-11-29T05:00:00Z"},
	} {
		at, _ := time.Parse(time.RFC3339, c.at)
		if next := c.window.Next(at).Format(time.RFC3339); next != c.next {
			t.Errorf("%s at %s: %s, not %s", c.window, c.at, next, c.next)
		}
	}
	for _, bad := range []struct {
		day, start string
		minutes    int
	}{{"Sunday", "03:00", 60}, {"", "03:00", 60}, {"monday", "3:00", 60}, {"monday", "24:00", 60}, {"monday", "", 60}, {"monday", "03:00", 29}, {"monday", "03:00", 1441}} {
		if w, err := model.NewMaintenanceWindow("w", bad.day, bad.start, bad.minutes); model.CodeOf(err) != model.CodeValidation {
			t.Errorf("%+v: %s %v", bad, w, err)
		}
	}
}
