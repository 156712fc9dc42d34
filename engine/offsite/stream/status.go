package stream

import "time"

// Status describes a Writer.
type Status struct {
	Epoch Epoch
	// Lag is the age of the oldest change that is not stored, 0 if there is none.
	Lag time.Duration
	// Backlog is the bytes that wait, those in flight included.
	Backlog int64
	// Stored is the last log object that is stored with all before it.
	Stored uint64
	// Point is the newest checkpoint, zero before the first.
	Point Point
	// Counts are since the Writer was opened.
	Counts Counts
	// Problem is the last failure; its Since is zero when the last act succeeded.
	Problem Failure
	// Foreign are keys below "epoch/" that somebody has used who lacks the master keys.
	Foreign []string
	// Ended is why the Writer has ended, as Err returns it.
	Ended error
}

// Counts are what a Writer has stored.
type Counts struct {
	LogObjects, Files, Points          uint64
	LogBytes, FileBytes, CatalogBlocks int64
}

// Failure is why copying does not make progress.
type Failure struct {
	Act   string
	Err   error
	Since time.Time
}

// Status returns a description of the moment.
func (w *Writer) Status() Status {
	oldest, bytes := w.waiting()
	for _, i := range w.sources() {
		bytes += i.source.Waiting().Later
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	s := Status{
		Epoch: w.claim.Epoch, Backlog: bytes, Stored: w.stored, Point: w.point,
		Counts: w.counts, Problem: w.problem, Foreign: w.foreign, Ended: w.Err(),
	}
	for _, p := range w.flight {
		s.Backlog += p.bytes
		oldest = earlier(oldest, p.oldest)
	}
	if !oldest.IsZero() {
		s.Lag = max(0, time.Since(oldest))
	}
	return s
}

// note remembers a failure and logs the first of several.
func (w *Writer) note(act string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.problem.Since.IsZero() {
		w.problem.Since = time.Now()
		w.options.Log.Warn("off-site copying is held up and will go on by itself", "act", act, "error", err)
	}
	w.problem.Act, w.problem.Err = act, err
}

// clear forgets the failure, because the store works.
func (w *Writer) clear() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.problem.Since.IsZero() {
		w.options.Log.Info("off-site copying goes on", "after", time.Since(w.problem.Since))
	}
	w.problem = Failure{}
}
