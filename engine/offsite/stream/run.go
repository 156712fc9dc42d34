package stream

import (
	"slices"
	"time"
)

// keptBuffer is the largest buffer that is kept while nothing waits.
const keptBuffer = 256 << 10

// run cuts log objects until the Writer ends.
func (w *Writer) run() {
	for {
		if !w.rest() || w.acquire() != nil {
			return
		}
		w.lastCut = time.Now()
		w.gather()
		w.send()
	}
}

// rest waits until a log object is to be cut. It returns false when the Writer ends.
func (w *Writer) rest() bool {
	for w.Err() == nil {
		oldest, bytes := w.waiting()
		flushing := w.finishFlushes(oldest)
		if oldest.IsZero() {
			if !w.sleep(nil) {
				return false
			}
			continue
		}
		pause := time.Until(w.lastCut.Add(w.options.Interval))
		if pause <= 0 || !w.stuck && (flushing && !w.held || bytes >= maxLog) {
			return true
		}
		if timer := time.NewTimer(pause); !w.sleep(timer.C) {
			return false
		}
	}
	return false
}

// sleep waits for the timer or a Flush, and without a timer for a source. It returns
// false when the Writer ends.
func (w *Writer) sleep(timer <-chan time.Time) bool {
	wake := w.wake
	if timer != nil {
		wake = nil // what is new waits for the timer too
	} else if cap(w.builder.plain) > keptBuffer {
		w.builder = logBuilder{}
	}
	select {
	case <-timer:
	case <-wake:
	case <-w.flush:
	case <-w.ctx.Done():
		return false
	}
	return true
}

// waiting returns the time of the oldest frame that no log object has, zero for none,
// and about how many bytes wait.
func (w *Writer) waiting() (oldest time.Time, bytes int64) {
	for _, i := range w.sources() {
		waiting := i.source.Waiting()
		if waiting.Oldest.IsZero() {
			continue
		}
		bytes += waiting.Bytes
		oldest = earlier(oldest, waiting.Oldest)
	}
	return oldest, bytes
}

// earlier returns the earlier of two times, of which a zero one does not count.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// finishFlushes lets those calls of Flush go on before whose time nothing waits. It
// reports whether one remains.
func (w *Writer) finishFlushes(oldest time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := len(w.flushes)
	w.flushes = slices.DeleteFunc(w.flushes, func(mark flushMark) bool {
		return oldest.IsZero() || oldest.After(mark.at)
	})
	if len(w.flushes) < before {
		w.notify()
	}
	return len(w.flushes) > 0
}

// acquire waits until another log object may be made.
func (w *Writer) acquire() error {
	select {
	case w.slots <- struct{}{}:
	case <-w.ctx.Done():
		return w.Err()
	}
	return w.budget.take(w.ctx, maxLogPlain)
}

// gather reads frames, always from the source whose next one is the oldest and up to the
// next one of another source, so that the log is in the order of time: what caused
// a change is not after it, wherever the log is cut. A source that fails is passed over.
func (w *Writer) gather() {
	w.builder = logBuilder{plain: w.builder.plain[:0]}
	if _, bytes := w.waiting(); bytes > maxLog/2 {
		w.builder.plain = slices.Grow(w.builder.plain, maxLog+share)
	}
	w.stuck, w.held = false, false
	failed, least := map[*input]bool{}, w.least()
	defer func() {
		w.setUnread(w.stuck)
		w.stuck = w.stuck || w.builder.header.frames == 0
	}()
	for len(w.builder.plain) < maxLog {
		next, oldest, until := w.oldestInput(failed)
		if next == nil {
			return
		}
		// Before the read: otherwise a frame that has left its source, but is not marked, would count as stored.
		w.mark(next, oldest)
		read, err := next.read(w.ctx, &w.builder, until, least)
		if err != nil {
			w.note("read what is to be copied", err)
		}
		w.mark(next, oldest)
		if err != nil || read == 0 {
			failed[next] = true
			w.stuck, w.held = w.stuck || err != nil, true
		}
	}
}

// setUnread notes whether a source failed.
func (w *Writer) setUnread(unread bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unread = unread
}

// mark notes what was read of an input for the log object that is being made, and that a frame of a time is read next.
func (w *Writer) mark(i *input, next time.Time) {
	since := i.source.Waiting().since()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.reads == nil {
		w.reads = map[*input]readMark{}
	}
	mark := w.reads[i]
	w.reads[i] = readMark{i.frames, earlier(mark.oldest, next), earlier(mark.since, since)}
}

// oldestInput returns the input whose next frame is the oldest, nil if none has one, its time, and the time up to which its
// frames may be read: that of the oldest of the others, and no later than when the inputs were asked. They are asked one after
// the other, and what an input has since may have been caused by what another one has that was asked before.
func (w *Writer) oldestInput(except map[*input]bool) (next *input, oldest, until time.Time) {
	began := time.Now()
	next, oldest, until = w.askInputs(except)
	if next != nil && oldest.After(began) {
		next, oldest, until = w.askInputs(except)
	}
	return next, oldest, earlier(until, began)
}

// askInputs returns the input whose next frame is the oldest, nil if none has one, its time, and the time of the oldest of the
// others, zero if there is none.
func (w *Writer) askInputs(except map[*input]bool) (next *input, oldest, others time.Time) {
	for _, i := range w.sources() {
		at := i.source.Waiting().Oldest
		if except[i] || at.IsZero() {
			continue
		}
		if next == nil || at.Before(oldest) {
			next, oldest, others = i, at, oldest
		} else {
			others = earlier(others, at)
		}
	}
	return next, oldest, others
}

// send makes a log object of what was gathered, and sends it in the background.
func (w *Writer) send() {
	if w.builder.header.frames == 0 {
		w.mu.Lock()
		w.reads = nil
		w.mu.Unlock()
		w.budget.give(maxLogPlain)
		<-w.slots
		return
	}
	w.builder.header.seq, w.builder.header.previous = w.cut.Log+1, w.cut.Hash
	object, hash := w.pack()
	size := min(int64(cap(object)), maxLogPlain)
	w.budget.give(maxLogPlain - size)
	p := &pending{seq: w.cut.Log + 1, bytes: size}
	w.mu.Lock()
	w.cut = Position{p.seq, hash}
	w.logged += int64(len(w.builder.plain))
	w.follow(w.builder.header.last)
	p.reads, w.reads = w.reads, nil
	w.flight = append(w.flight, p)
	w.mu.Unlock()
	w.tasks.Go(func() {
		defer w.budget.give(size)
		defer w.keepBuffer(object)
		if w.put(w.ctx, w.claim.Epoch.logKey(p.seq), small(object)) == nil {
			w.markStored(p)
		}
	})
}

// pack returns the log object, in a buffer of about its size.
func (w *Writer) pack() ([]byte, Hash) {
	var buffer []byte
	if kept, ok := w.buffers.Get().(*[]byte); ok {
		buffer = *kept
	} else if size := len(w.builder.plain); size > keptBuffer {
		buffer = make([]byte, 0, size+size/64+logHead)
	}
	packed, hash := w.builder.finish(w.repo.zstd, buffer[:0])
	if len(packed) > cap(packed)/2 {
		return packed, hash
	}
	w.keepBuffer(packed)
	return slices.Clone(packed), hash
}

// keepBuffer lets a large buffer be used again, until the next collection of garbage.
func (w *Writer) keepBuffer(b []byte) {
	if cap(b) > keptBuffer {
		w.buffers.Put(&b)
	}
}

// markStored acknowledges the log objects that are stored with all before them. Only
// then others follow: no object is stored InFlight or more after one that is not.
func (w *Writer) markStored(p *pending) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p.stored = true
	w.counts.LogObjects++
	w.counts.LogBytes += p.bytes
	for len(w.flight) > 0 && w.flight[0].stored {
		p, w.flight = w.flight[0], w.flight[1:]
		w.stored = p.seq
		<-w.slots
		for i, mark := range p.reads {
			i.source.Stored(mark.frames)
		}
	}
	w.notify()
}
