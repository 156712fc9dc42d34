package model

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// MaintenanceWindow is the time of the day or week, in UTC, in which the scheduled
// backups of a database begin. The zero window is none.
type MaintenanceWindow struct {
	Day     string `json:"day"`     // such as "sunday", or EveryDay
	Start   int    `json:"start"`   // in minutes since midnight
	Minutes int    `json:"minutes"` // how long it is open
}

// EveryDay is the Day of a window that opens daily.
const EveryDay = "every_day"

// The limits of the length of a maintenance window, in minutes.
const (
	MinWindowMinutes = 30
	MaxWindowMinutes = 24 * 60
)

// NewMaintenanceWindow returns the window that opens at start, such as "03:00".
// Errors name parts of field.
func NewMaintenanceWindow(field, day, start string, minutes int) (MaintenanceWindow, error) {
	at, err := time.Parse("15:04", start)
	switch {
	case err != nil || len(start) != len("15:04"):
		return MaintenanceWindow{}, Invalid(field+".start", "must be a time of the day such as 03:00, in UTC")
	case !slices.Contains(WindowDays(), day):
		return MaintenanceWindow{}, Invalid(field+".day", "must be one of %s", strings.Join(WindowDays(), ", "))
	case minutes < MinWindowMinutes || minutes > MaxWindowMinutes:
		return MaintenanceWindow{}, Invalid(field+".minutes", "must be from %d to %d", MinWindowMinutes, MaxWindowMinutes)
	}
	return MaintenanceWindow{Day: day, Start: at.Hour()*60 + at.Minute(), Minutes: minutes}, nil
}

// WindowDays returns the days on which a window can open.
func WindowDays() []string {
	return []string{EveryDay, "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"}
}

// IsZero reports whether there is no window.
func (w MaintenanceWindow) IsZero() bool { return w.Minutes == 0 }

// StartTime returns the time of the day at which the window opens, such as "03:00".
func (w MaintenanceWindow) StartTime() string {
	return fmt.Sprintf("%02d:%02d", w.Start/60, w.Start%60)
}

// String describes the window, such as "sunday 03:00 UTC for 120 minutes".
func (w MaintenanceWindow) String() string {
	if w.IsZero() {
		return "none"
	}
	return fmt.Sprintf("%s %s UTC for %d minutes", w.Day, w.StartTime(), w.Minutes)
}

// Next returns the first time in the window that is not before at.
func (w MaintenanceWindow) Next(at time.Time) time.Time {
	if w.IsZero() {
		return at
	}
	at = at.UTC()
	midnight := time.Date(at.Year(), at.Month(), at.Day(), 0, 0, 0, 0, time.UTC)
	for day := -1; ; day++ { // yesterday's may still be open
		opens := midnight.AddDate(0, 0, day).Add(time.Duration(w.Start) * time.Minute)
		if w.Day != EveryDay && strings.ToLower(opens.Weekday().String()) != w.Day {
			continue
		}
		if closes := opens.Add(time.Duration(w.Minutes) * time.Minute); at.Before(closes) {
			return later(at, opens)
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
