package importer

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"holdfast/engine/model"
)

// Account is the record of a running import: its progress, log and flaws. Its methods are safe for concurrent use.
type Account struct {
	clock func() time.Time

	mu     sync.Mutex
	record model.Import
	began  time.Time // of the copying
	total  float64   // all work, in bytes of the source's files
	done   float64
	active map[*transfer]bool

	logged, flawed int // bytes of text in the record
}

// NewAccount returns an account that starts with the given record.
func NewAccount(record model.Import, clock func() time.Time) *Account {
	a := &Account{record: record, clock: clock, active: map[*transfer]bool{}}
	for _, line := range record.Log {
		a.logged += len(line.Message)
	}
	for _, flaw := range record.Errors {
		a.flawed += len(flaw.Object) + len(flaw.Message)
	}
	return a
}

// Limits of the record, which is rewritten every few seconds. The text of log lines and the text of flaws are limited
// separately, in bytes.
const (
	mostLines   = 2000
	mostFlaws   = 1000
	mostText    = 256 << 10
	mostMissing = 100 // names of extensions
)

// Snapshot returns the current record.
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
	} else if record.Status == model.ImportVerifying || record.Status == model.ImportFollowing || record.Status == model.ImportCuttingOver {
		record.Progress = 99
	}
	record.MissingExts = slices.Clone(record.MissingExts)
	record.Errors = slices.Clone(record.Errors)
	record.Log = slices.Clone(record.Log)
	return record
}

// Enter sets the import's status and phase.
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

// say adds a line, for which the oldest ones make way: what ends an import must not be missing.
func (a *Account) say(level, message string) {
	message = oneLine(message)
	log := append(a.record.Log, model.ImportLine{At: a.clock(), Level: level, Message: message})
	a.logged += len(message)
	dropped := 0
	for a.logged > mostText || len(log)-dropped > mostLines {
		a.logged -= len(log[dropped].Message)
		dropped++
	}
	if log = log[dropped:]; dropped > 0 {
		a.logged += len(logFull) - len(log[0].Message)
		log[0].Level, log[0].Message = model.ImportWarning, logFull
	}
	a.record.Log = log
}

// logFull is the first line of a log that has lost lines.
const logFull = "the log is full: earlier lines are left out"

// missing records the extensions that are not available here.
func (a *Account) missing(names []string) {
	names = names[:min(len(names), mostMissing)]
	shown := make([]string, len(names))
	for i, name := range names {
		shown[i] = oneLine(name)
	}
	a.change(func(record *model.Import) { record.MissingExts = shown })
}

// newFlaw describes an error of an object.
func newFlaw(object string, err error) model.ImportFlaw {
	flaw := model.ImportFlaw{Object: oneLine(object), Message: oneLine(err.Error())}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		flaw.SQLState, flaw.Message = pg.Code, oneLine(pg.Message)
		if pg.Detail != "" {
			flaw.Message += " (" + oneLine(pg.Detail) + ")"
		}
	}
	return flaw
}

// flaw records once that something was not copied.
func (a *Account) flaw(object string, err error) {
	flaw := newFlaw(object, err)
	a.mu.Lock()
	defer a.mu.Unlock()
	if slices.Contains(a.record.Errors, flaw) { // of an attempt before
		return
	}
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

// plan sets the total work.
func (a *Account) plan(total float64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.began, a.total = a.clock(), total
}

// addDone records that work of that weight is done.
func (a *Account) addDone(weight float64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.done += weight
}

func (a *Account) start(t *transfer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.active[t] = true
}

// finish ends a transfer; its rows and bytes count only if the copy was committed.
func (a *Account) finish(t *transfer, copied bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.active, t)
	if copied {
		a.record.RowsCopied += t.rows.Load()
		a.record.BytesCopied += t.bytes.Load()
	}
}

// share returns the share of the work that is done.
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

// The least time and share of the copying that must have passed before the rest is estimated.
const (
	leastTime  = 5 * time.Second
	leastShare = 0.05
)

// secondsLeft extrapolates the remaining time from the elapsed time; nil while too little is done for an estimate.
func (a *Account) secondsLeft(share float64) *int64 {
	elapsed := a.clock().Sub(a.began)
	if elapsed < leastTime || share < leastShare {
		return nil
	}
	left := int64(elapsed.Seconds() * (1 - share) / share)
	return &left
}
