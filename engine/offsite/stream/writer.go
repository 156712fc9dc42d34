package stream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"holdfast/internal/objectstore"
)

// Options are how a Writer works. Zero values stand for those in brackets.
type Options struct {
	Interval   time.Duration // between log objects that are not full [1s]
	InFlight   int           // log objects, and parts of files, that are sent at once [4 each]; at most 16
	Memory     int64         // bytes for everything that is sent [16 MiB]; at least 8 MiB
	CheckEvery time.Duration // between looks for later epochs [30s]
	MaxBackOff time.Duration // between attempts while the store fails [1m]; one of those that fail is tried more often
	// Previous is the newest checkpoint, whose blocks are used again.
	Previous *Checkpoint
	// Lock is the mode of the retention of everything that is stored, empty for none,
	// and Retention how long it is.
	Lock      objectstore.Mode
	Retention time.Duration
	// IsPlausible reports whether a time of the log is not that of a clock that was far ahead; nil believes all. What follows
	// gets no time before one that is plausible.
	IsPlausible func(time.Time) bool
	// Log gets what a person should know.
	Log *slog.Logger
}

func (o Options) withDefaults() Options {
	for d, v := range map[*time.Duration]time.Duration{
		&o.Interval: time.Second, &o.CheckEvery: 30 * time.Second, &o.MaxBackOff: time.Minute,
	} {
		if *d == 0 {
			*d = v
		}
	}
	if o.InFlight == 0 {
		o.InFlight = 4
	}
	o.InFlight = min(o.InFlight, maxInFlight)
	if o.Memory == 0 {
		o.Memory = 16 << 20
	}
	o.Memory = max(o.Memory, maxLogPlain)
	if o.IsPlausible == nil {
		o.IsPlausible = func(time.Time) bool { return true }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// maxInFlight is how far a log object may be ahead of one that is not stored. Where
// one is further ahead of a missing one, that was lost.
const maxInFlight = 16

// Writer appends to the log of one epoch, and stores files and checkpoints. Only one
// Writer may ever use a claim. It is safe for concurrent use.
type Writer struct {
	repo    *Repository
	claim   Claim
	options Options
	budget  *budget
	slots   chan struct{} // one for each log object in flight
	parts   chan struct{} // one for each part of a file in flight
	wake    chan struct{} // a source has something
	flush   chan struct{} // Flush was called, or a source removed

	buffers sync.Pool  // *[]byte, for log objects
	builder logBuilder // of run, as are the next three
	lastCut time.Time
	stuck   bool // nothing could be read though a source said so, or a source failed
	held    bool // a source had nothing to read though it said so

	ctx    context.Context //nolint:containedctx // of everything that runs until Close
	cancel context.CancelCauseFunc
	tasks  sync.WaitGroup

	checkpointing sync.Mutex         // held for a checkpoint
	blocks        map[Hash]Reference // of the newest one, by content; under checkpointing

	checking sync.Mutex
	junk     map[string]bool // keys below "epoch/" that are not claims; under checking

	mu      sync.Mutex
	changed chan struct{} // closed and replaced when something below changes
	inputs  []*input      // replaced, never changed
	flushes []flushMark   // calls of Flush under way
	cut     Position      // the last log object that was made
	stored  uint64        // the last one that is stored, with all before
	flight  []*pending    // those between, in order
	// reads is what was read for the log object that is being made.
	reads     map[*input]readMark
	lastFile  uint64
	lastFlush uint64
	point     Point
	newest    time.Time // time of all frames that were cut and of all points, those that the epoch follows included
	logged    int64     // bytes of frames in log objects that were made
	covered   int64     // of them, those that are not replayed after the point
	counts    Counts
	problem   Failure
	unread    bool     // the last read of the sources failed
	retries   []*retry // acts that failed and are tried again, in the order in which they first failed
	// retryEnded is closed and replaced when one of them ends.
	retryEnded chan struct{}
	foreign    []string // keys; replaced, never changed
}

// flushMark is a call of Flush: what is older than at is cut without delay.
type flushMark struct {
	at time.Time
	id uint64
}

// Position is a log object and its hash.
type Position struct {
	Log  uint64
	Hash Hash
}

// pending is a log object that is being sent.
type pending struct {
	seq    uint64
	bytes  int64
	reads  map[*input]readMark
	stored bool
}

// readMark is what a log object has of an input: its frames up to the end of the object, the time of the first one
// in it, and a time before which nothing of it was acknowledged.
type readMark struct {
	frames        uint64
	oldest, since time.Time
}

// NewWriter starts the Writer of the newest epoch of a history, which the caller has
// just claimed and uses for nothing else. The caller closes it.
func NewWriter(ctx context.Context, h *History, o Options) (*Writer, error) {
	claim := h.Tip()
	w := &Writer{
		repo: h.repo, claim: claim, options: o.withDefaults(),
		wake: make(chan struct{}, 1), flush: make(chan struct{}, 1), changed: make(chan struct{}), retryEnded: make(chan struct{}), junk: map[string]bool{},
		cut: Position{claim.Cut.Log, claim.Cut.Hash}, stored: claim.Cut.Log, blocks: map[Hash]Reference{},
	}
	w.follow(claim.Cut.Last)
	w.follow(claim.Cut.Point.Time)
	w.budget, w.slots = newBudget(w.options.Memory), make(chan struct{}, w.options.InFlight)
	w.parts = make(chan struct{}, w.options.InFlight)
	if o.Previous != nil {
		blocks, err := h.repo.blockRefs(ctx, o.Previous)
		if err != nil && !Damaged(err) {
			return nil, err
		}
		if err == nil {
			w.blocks = blocks
		}
	}
	w.ctx, w.cancel = context.WithCancelCause(context.Background())
	w.tasks.Go(w.run)
	w.tasks.Go(w.watch)
	return w, nil
}

// follow notes that the log or a checkpoint has something of a time. w.mu is held.
func (w *Writer) follow(at time.Time) {
	if at.After(w.newest) {
		w.newest = at
	}
}

// least returns the least time of what follows, zero for any. A recovery finds a moment by the times of points and frames, so
// while this machine's clock is behind those that are stored, as before its first synchronization, their times go on from there.
func (w *Writer) least() time.Time {
	w.mu.Lock()
	newest := w.newest
	w.mu.Unlock()
	if !newest.After(time.Now().Round(0)) || !w.options.IsPlausible(newest) {
		return time.Time{}
	}
	return newest.Add(1)
}

// Add begins to read a source.
func (w *Writer) Add(s Source) {
	w.mu.Lock()
	w.inputs = append(slices.Clip(w.inputs), &input{source: s})
	w.mu.Unlock()
	w.Wake()
}

// Remove ends the reading of a source, after a Next that is under way. Stored may
// still be called.
func (w *Writer) Remove(s Source) {
	w.mu.Lock()
	var removed []*input
	kept := make([]*input, 0, len(w.inputs))
	for _, i := range w.inputs {
		if i.source == s {
			removed = append(removed, i)
		} else {
			kept = append(kept, i)
		}
	}
	w.inputs = kept
	w.mu.Unlock()
	for _, i := range removed {
		i.remove()
	}
	signal(w.flush)
}

func (w *Writer) sources() []*input {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.inputs
}

// Epoch returns the epoch that the Writer writes.
func (w *Writer) Epoch() Epoch { return w.claim.Epoch }

// Wake says that a source has something. It returns at once.
func (w *Writer) Wake() { signal(w.wake) }

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Done is closed when the Writer has ended. Err says why.
func (w *Writer) Done() <-chan struct{} { return w.ctx.Done() }

// Err returns why the Writer has ended, and nil before: ErrFenced, ErrClosed, or that it cannot
// open a later claim.
func (w *Writer) Err() error { return context.Cause(w.ctx) }

// fence ends the Writer for good.
func (w *Writer) fence(err error) {
	if w.Err() == nil {
		w.options.Log.Error("off-site copying has ended: another machine has taken over", "error", err)
	}
	w.cancel(fmt.Errorf("%w: %w", ErrFenced, err))
}

// notify wakes those who wait for a change. w.mu is held.
func (w *Writer) notify() {
	close(w.changed)
	w.changed = make(chan struct{})
}

// await waits until done, which is called with w.mu held, returns true.
func (w *Writer) await(ctx context.Context, done func() bool) error {
	for {
		w.mu.Lock()
		ok, changed := done(), w.changed
		w.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-w.ctx.Done():
			return w.Err()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Flush returns when everything that the sources had when it was called is stored,
// and says up to where the log was then.
func (w *Writer) Flush(ctx context.Context) (Position, error) {
	if err := w.Err(); err != nil {
		return Position{}, err
	}
	w.mu.Lock()
	w.lastFlush++
	mark := flushMark{time.Now(), w.lastFlush}
	w.flushes = append(w.flushes, mark)
	w.mu.Unlock()
	signal(w.flush)
	flushed := func() bool { return !slices.Contains(w.flushes, mark) }
	if err := w.await(ctx, flushed); err != nil {
		return Position{}, fmt.Errorf("flush the log: %w", err)
	}
	w.mu.Lock()
	at := w.cut
	w.mu.Unlock()
	if err := w.await(ctx, func() bool { return w.stored >= at.Log }); err != nil {
		return Position{}, fmt.Errorf("flush the log: %w", err)
	}
	return at, nil
}

// Close stores what the sources have, for as long as ctx lasts, and ends the Writer.
// The error says when something remained. It can be called again.
func (w *Writer) Close(ctx context.Context) error {
	_, err := w.Flush(ctx)
	if errors.Is(err, ErrClosed) {
		err = nil
	}
	w.cancel(ErrClosed)
	w.tasks.Wait()
	return err
}
