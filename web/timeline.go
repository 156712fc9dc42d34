package web

import (
	"fmt"
	"slices"
	"time"

	"holdfast/engine/model"
)

// timeline is a database's past as a line: the points to which it can be
// restored, and when it was.
type timeline struct {
	From, To time.Time
	Marks    []mark
}

// mark is something that happened.
type mark struct {
	At   time.Time
	X    string // along the line
	Kind string // "backup" or "restore"
	Text string
	Href string // "" leads nowhere
}

// timelineEdge keeps the first and the last mark off the line's ends, in
// percent.
const timelineEdge = 2

// newTimeline draws a line from the oldest mark to now; one without any marks
// has nothing to show.
func newTimeline(database string, backups []model.Backup, operations []model.DatabaseOperation, now time.Time) timeline {
	t := timeline{To: now}
	for _, b := range backups {
		if b.Status == model.BackupCompleted && b.CompletedAt != nil {
			t.Marks = append(t.Marks, mark{
				At: *b.CompletedAt, Kind: "backup", Text: "Backup of " + stamp(b.CompletedAt),
				Href: "/databases/" + database + "/backups/" + b.ID,
			})
		}
	}
	for _, op := range operations {
		isRestore := op.Type == model.OperationRestore || op.Type == model.OperationPITR
		if isRestore && op.Status == model.OperationCompleted && op.CompletedAt != nil {
			t.Marks = append(t.Marks, mark{At: *op.CompletedAt, Kind: "restore", Text: "Restored at " + stamp(op.CompletedAt)})
		}
	}
	slices.SortFunc(t.Marks, func(a, b mark) int { return a.At.Compare(b.At) })
	if len(t.Marks) == 0 {
		return t
	}
	t.From = t.Marks[0].At
	for i := range t.Marks {
		part := float64(t.Marks[i].At.Sub(t.From)) / float64(max(now.Sub(t.From), 1))
		t.Marks[i].X = fmt.Sprintf("%.2f%%", timelineEdge+part*(100-2*timelineEdge))
	}
	return t
}
