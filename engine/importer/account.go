package importer

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"holdfast/engine/model"
)

// Account is what there is to tell of a running import. Its methods may be
// called by several goroutines.
type Account struct {
	clock func() time.Time

	mu     sync.Mutex
	record model.Import
	began  time.Time // the copying
	total  float64   // what there is to do, in bytes of the source's files
	done   float64
	active map[*transfer]bool

	logged, flawed int  // bytes of text in the record
	full           bool // the log
}

// NewAccount begins the account of the import that record is of.
func NewAccount(record model.Import, clock func() time.Time) *Account {
	return &Account{record: record, clock: clock, active: map[*transfer]bool{}}
}

// The bounds of what is kept. The text of lines and of flaws is counted in
// bytes, each for itself: the record is written anew every few seconds.
const (
	mostLines   = 2000
	mostFlaws   = 1000
	mostText    = 256 << 10
	mostMissing = 100 // names of extensions
)

// Snapshot returns the record as it is now.
func (a *Account) Snapshot() model.Import {
	a.mu.Lock()
	defer a.mu.Unlock()
	record := a.record
	for t := range a.active {
		record.RowsCopied += t.rows.Load()
		record.BytesCopied += t.bytes.Load()
	}
	if share, ok := a.share(); ok {
		record.Progress = int(share * 99)
		record.SecondsLeft = a.secondsLeft(share)
	} else if record.Status == model.ImportVerifying {
		record.Progress = 99
	}
	record.MissingExts = slices.Clone(record.MissingExts)
	record.Errors = slices.Clone(record.Errors)
	record.Log = slices.Clone(record.Log)
	return record
}

// Enter notes that the import is in another state and phase.
func (a *Account) Enter(status model.ImportStatus, phase string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.record.Status, a.record.Phase = status, phase
}

// Say adds a line to the log.
func (a *Account) Say(level, message string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.say(level, message)
}

func (a *Account) say(level, message string) {
	if a.full {
		return
	}
	message = oneLine(message)
	if a.logged += len(message); a.logged > mostText || len(a.record.Log) == mostLines-1 {
		a.full, level, message = true, model.ImportWarning, "the log is full: what follows is left out"
	}
	a.record.Log = append(a.record.Log, model.ImportLine{At: a.clock(), Level: level, Message: message})
}

// missing notes which extensions are not available here.
func (a *Account) missing(names []string) {
	names = names[:min(len(names), mostMissing)]
	shown := make([]string, len(names))
	for i, name := range names {
		shown[i] = oneLine(name)
	}
	a.change(func(record *model.Import) { record.MissingExts = shown })
}

// flaw notes that something did not come over.
func (a *Account) flaw(object string, err error) {
	flaw := model.ImportFlaw{Object: oneLine(object), Message: oneLine(err.Error())}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		flaw.SQLState, flaw.Message = pg.Code, oneLine(pg.Message)
		if pg.Detail != "" {
			flaw.Message += " (" + oneLine(pg.Detail) + ")"
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.flawed += len(flaw.Object) + len(flaw.Message)
	if a.flawed > mostText || len(a.record.Errors) == mostFlaws {
		a.record.ErrorsBeyond++
		return
	}
	a.record.Errors = append(a.record.Errors, flaw)
	a.say(model.ImportError, flaw.Object+": "+flaw.Message)
}

func (a *Account) change(fn func(*model.Import)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	fn(&a.record)
}

// plan says what there is to do.
func (a *Account) plan(total float64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.began, a.total = a.clock(), total
}

// achieve notes that work of that weight is done.
func (a *Account) achieve(weight float64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.done += weight
}

func (a *Account) start(t *transfer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.active[t] = true
}

// finish ends a transfer; what it copied counts when it is there to stay.
func (a *Account) finish(t *transfer, copied bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.active, t)
	if copied {
		a.record.RowsCopied += t.rows.Load()
		a.record.BytesCopied += t.bytes.Load()
	}
}

// share is how much of the work is done.
func (a *Account) share() (float64, bool) {
	if a.total <= 0 || a.record.Status != model.ImportCopying {
		return 0, false
	}
	done := a.done
	for t := range a.active {
		done += t.weight * t.share()
	}
	return min(done/a.total, 1), true
}

// The least of the copying that must be behind for an estimate of the rest.
const (
	leastTime  = 5 * time.Second
	leastShare = 0.05
)

// secondsLeft is how long the rest takes if it goes on as it went so far; nil
// while too little is done to say.
func (a *Account) secondsLeft(share float64) *int64 {
	elapsed := a.clock().Sub(a.began)
	if elapsed < leastTime || share < leastShare {
		return nil
	}
	left := int64(elapsed.Seconds() * (1 - share) / share)
	return &left
}
