package engine

import (
	"strconv"
	"sync"
	"time"

	"holdfast/engine/model"
)

const (
	// auditFoldLimit is how many entries of one source that has no budget are
	// written in an auditFoldWindow.
	auditFoldLimit  = 60
	auditFoldWindow = time.Minute
)

// auditFold bounds what requests leave in the log that nothing else bounds:
// whoever makes enough of them would push out what matters. Beyond the bound the
// last of a window is written, and says how many are not.
type auditFold struct {
	mu      sync.Mutex
	began   time.Time // the window
	sources map[auditSource]*folded
}

// auditSource is who a request came from, as far as that is bounded: of
// addresses somebody may have any number.
type auditSource struct {
	organization string
	actor        model.Actor
}

type folded struct {
	entries int
	last    *model.AuditEntry // not written yet; nil within the bound
}

func newAuditFold() *auditFold { return &auditFold{sources: map[auditSource]*folded{}} }

// folds reports whether a call is one that no budget bounds: with a key that is
// none, or none any more, beyond the budget of one, or with a download link.
func folds(call *model.Call, err error) bool {
	return call.Actor.Type == model.ActorKey && call.Key == nil || model.CodeOf(err) == model.CodeRateLimited ||
		call.Operation.Action == model.ActionObjectDownload || call.Operation.Action == model.ActionExportDownload
}

// admit takes an entry and returns those that are to be written now.
func (f *auditFold) admit(entry *model.AuditEntry) []*model.AuditEntry {
	write := f.turn(entry.At)
	f.mu.Lock()
	defer f.mu.Unlock()
	source := auditSource{entry.Organization, entry.Actor}
	s := f.sources[source]
	if s == nil {
		s = &folded{}
		f.sources[source] = s
	}
	if s.entries++; s.entries <= auditFoldLimit {
		return append(write, entry)
	}
	s.last = entry
	return write
}

// turn begins another window when the one before is over, and returns what is
// to be written of that.
func (f *auditFold) turn(now time.Time) []*model.AuditEntry {
	f.mu.Lock()
	defer f.mu.Unlock()
	if past := now.Sub(f.began); past >= 0 && past < auditFoldWindow {
		return nil
	}
	f.began = now
	return f.rest()
}

// end returns what is still to be written.
func (f *auditFold) end() []*model.AuditEntry {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.rest()
}

func (f *auditFold) rest() (write []*model.AuditEntry) {
	for _, s := range f.sources {
		if s.last == nil {
			continue
		}
		details := map[string]string{"not_logged": strconv.Itoa(s.entries - auditFoldLimit - 1)}
		for name, value := range s.last.Details {
			details[name] = value
		}
		s.last.Details = details
		write = append(write, s.last)
	}
	clear(f.sources)
	return write
}
