package web

import (
	"fmt"
	"time"

	"holdfast/engine/recovery"
)

// timeline shows a database's history: the range it can be restored to, its
// backups and its restores.
type timeline struct {
	From, To time.Time
	Marks    []mark
	// BandX and BandWidth are the restorable range, "" if there is none.
	BandX, BandWidth string
}

// mark is an event on the timeline.
type mark struct {
	X    string // along the line
	Kind string // "backup", "restore", "gap" or "timeline_switch"
	Text string
	Href string // "" if there is no link
}

// newTimeline returns a timeline from the first known event to now. Without
// events it is empty.
func newTimeline(database string, r recovery.Recovery, now time.Time) timeline {
	t := timeline{From: now, To: now}
	for _, event := range r.Timeline {
		if event.At.Before(t.From) {
			t.From = event.At
		}
	}
	if earliest := r.Window.Earliest; earliest != nil && earliest.Before(t.From) {
		t.From = *earliest
	}
	for _, event := range r.Timeline {
		m := mark{X: percentage(t.part(event.At)), Kind: event.Type, Text: humanize(event.Type) + ", " + stamp(event.At)}
		if event.Backup != "" && event.Type == "backup" {
			m.Href = "/databases/" + database + "/backups/" + event.Backup
		}
		t.Marks = append(t.Marks, m)
	}
	if w := r.Window; w.Earliest != nil && w.Latest != nil {
		from, to := t.part(*w.Earliest), t.part(*w.Latest)
		t.BandX, t.BandWidth = percentage(from), percentage(max(to-from, 0))
	}
	return t
}

// timelineEdge is the margin at both ends of the timeline.
const timelineEdge = 0.02

// part returns the position of a time on the timeline.
func (t timeline) part(at time.Time) float64 {
	part := float64(at.Sub(t.From)) / float64(max(t.To.Sub(t.From), 1))
	return timelineEdge + max(0, min(part, 1))*(1-2*timelineEdge)
}

func percentage(part float64) string { return fmt.Sprintf("%.2f%%", 100*part) }
