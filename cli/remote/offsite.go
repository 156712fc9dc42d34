package remote

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"holdfast/server/api/wire"
)

// OffsiteStatus returns the command that shows how far the copy of an appliance off-site is.
func OffsiteStatus(version string) *cobra.Command {
	s := newSession(version)
	cmd := s.command("status", "Show how far the copy in a store elsewhere is", cobra.NoArgs, func(t *task, _ []string) error {
		return shows(t, offsiteDetails)(t.api.GetOffsite(t.ctx))
	})
	s.register(cmd)
	return cmd
}

func offsiteDetails(w io.Writer, o wire.Offsite) {
	details(w, offsiteFields(o)...)
	printMore(w, []string{"STREAM", "RECOVERS TO", "BEHIND", "WAITING"}, o.Streams, func(s wire.OffsiteStream) []string {
		name := string(s.Stream)
		if s.Database != nil {
			name += " of " + *s.Database
		}
		return []string{name, formatTime(&s.Point), behind(&s.LagSeconds), size(s.BacklogBytes)}
	})
	if o.Recovery != nil {
		fmt.Fprintln(w)
		details(w, recoveredFields(*o.Recovery)...)
	}
}

// recoveredFields returns what details shows of a recovery.
func recoveredFields(r wire.RecoveredAppliance) []string {
	fields := []string{"recovered from", r.Machine, "as of", formatTime(&r.Until), "complete", completeness(r)}
	for _, d := range r.Databases {
		state := "to follow"
		switch {
		case d.Problem != nil:
			state = "failed: " + *d.Problem
		case d.Done && d.LastCommitAt != nil:
			state = "back, last commit " + formatTime(d.LastCommitAt)
		case d.Done:
			state = "back"
		case d.Left:
			state = "left in the copy (--only)"
		case d.InTrash:
			state = "in the trash"
		}
		fields = append(fields, "database "+d.Database, state)
	}
	return append(fields, "objects dropped", damagedCount(r.ObjectsDropped), "objects damaged", damagedCount(r.ObjectsDamaged))
}

// completeness says since when everything is back, or how many databases are not.
func completeness(r wire.RecoveredAppliance) string {
	missing := 0
	for _, d := range r.Databases {
		if d.Problem != nil && !d.InTrash {
			missing++
		}
	}
	if missing > 0 {
		return fmt.Sprintf("no: databases that are not back: %d", missing)
	}
	return formatTime(r.EndedAt)
}

// offsiteFields returns what details shows of a copy.
func offsiteFields(o wire.Offsite) []string {
	fields := []string{"copy off-site", string(o.Status)}
	if o.Status == wire.OffsiteOff {
		return fields
	}
	return append(fields,
		"recovers to", formatTime(o.Point), "behind", behind(o.LagSeconds), "waiting", size(o.BacklogBytes),
		"last verified", formatTime(o.VerifiedAt), "last restored on trial", restored(o), "damaged", damagedCount(o.DamagedObjects), "only off-site", awayObjects(o.Objects), "objects here", localObjects(o.Objects), "problem", text(o.Problem), "taken over by", text(o.TakenOverBy))
}

// restored says when a database was restored on trial, or that the newest trial failed.
func restored(o wire.Offsite) string {
	if o.RestoreFailed {
		return "failed: the appliance's log says why"
	}
	return formatTime(o.RestoredAt)
}

// awayObjects says what is in the copy only.
func awayObjects(o wire.OffsiteObjects) string {
	if o.Away == 0 {
		return ""
	}
	return fmt.Sprintf("%d objects, %s", o.Away, size(o.AwayBytes))
}

// localObjects says how much of the bound is used, nothing without one.
func localObjects(o wire.OffsiteObjects) string {
	if o.LocalLimitBytes == nil {
		return ""
	}
	return fmt.Sprintf("%s of %s", size(o.LocalBytes), size(*o.LocalLimitBytes))
}

func damagedCount(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d objects", n)
}

func behind(seconds *float64) string {
	if seconds == nil {
		return ""
	}
	return (time.Duration(*seconds*1000) * time.Millisecond).String()
}
