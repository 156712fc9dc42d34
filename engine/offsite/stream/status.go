package stream

import "time"

// Status describes a Writer.
type Status struct {
	Epoch Epoch
	// Lag is the age of the oldest change that is not stored, 0 if there is none.
	Lag time.Duration
	// Since is a time before which nothing was acknowledged that is not stored, zero if everything is.
	Since time.Time
	// Backlog is the bytes that wait, those in flight included.
	Backlog int64
	// Stored is the last log object that is stored with all before it.
	Stored uint64
	// Point is the newest checkpoint, zero before the first.
	Point Point
	// Replay is the bytes of frames after that, or since the Writer was opened: what a recovery replays.
	Replay int64
	// Streams has the lag and the backlog of each stream.
	Streams map[Stream]StreamStatus
	// Counts are since the Writer was opened.
	Counts Counts
	// Problem is the last failure; its Since is zero when nothing that failed waits.
	Problem Failure
	// Foreign are keys below "epoch/" that somebody has used who lacks the master keys.
	Foreign []string
	// Ended is why the Writer has ended, as Err returns it.
	Ended error
}

// StreamStatus describes a stream.
type StreamStatus struct {
	Lag     time.Duration // as in Status
	Since   time.Time     // as in Status
	Backlog int64         // bytes that no log object has yet
	oldest  time.Time
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
	var bytes int64
	streams := map[Stream]StreamStatus{}
	for _, i := range w.sources() {
		waiting := i.source.Waiting()
		size := waiting.Later
		if !waiting.Oldest.IsZero() {
			size += waiting.Bytes
		}
		bytes += size
		addTo(streams, i.source, waiting.Oldest, waiting.since(), size)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	s := Status{
		Epoch: w.claim.Epoch, Backlog: bytes, Stored: w.stored, Point: w.point, Replay: w.logged - w.covered,
		Counts: w.counts, Problem: w.problem, Foreign: w.foreign, Ended: w.Err(),
	}
	addMarks := func(reads map[*input]readMark) {
		for i, mark := range reads {
			addTo(streams, i.source, mark.oldest, mark.since, 0)
		}
	}
	addMarks(w.reads)
	for _, p := range w.flight {
		s.Backlog += p.bytes
		addMarks(p.reads)
	}
	var oldest time.Time
	for name, st := range streams {
		oldest, s.Since = earlier(oldest, st.oldest), earlier(s.Since, st.Since)
		st.Lag = lagOf(st.oldest)
		streams[name] = st
	}
	s.Lag, s.Streams = lagOf(oldest), streams
	return s
}

func lagOf(oldest time.Time) time.Duration {
	if oldest.IsZero() {
		return 0
	}
	return max(0, time.Since(oldest))
}

// addTo adds what a source lacks to its stream.
func addTo(streams map[Stream]StreamStatus, s Source, oldest, since time.Time, bytes int64) {
	name := streamOf(s)
	st := streams[name]
	st.oldest, st.Since, st.Backlog = earlier(st.oldest, oldest), earlier(st.Since, since), st.Backlog+bytes
	streams[name] = st
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

// clear forgets the failure, because the store works, unless something that failed still waits.
func (w *Writer) clear() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.retries) > 0 || w.unread {
		return
	}
	if !w.problem.Since.IsZero() {
		w.options.Log.Info("off-site copying goes on", "after", time.Since(w.problem.Since))
	}
	w.problem = Failure{}
}
