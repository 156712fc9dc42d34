package offsite

import (
	"context"
	"slices"
	"sync"
	"time"

	"holdfast/engine/meta"
	"holdfast/engine/offsite/stream"
)

// metadataSource is the changes of the metadata, for one writer.
type metadataSource struct {
	part    *metadataPart
	writer  *stream.Writer
	known   *known
	capture *meta.Capture
	missing chan struct{} // changes are missing after those that Next returned

	mu       sync.Mutex
	snapshot []stream.Frame // of a snapshot, before what is captured
	rest     []stream.Frame // of transactions that Next did not return whole
	held     bool           // nothing more is returned before a snapshot
	since    time.Time      // of what is missing, until the log is consistent again; zero then
	until    uint64         // the transaction that makes the snapshot consistent, 0 for none
	number   uint64         // of the capture's beginnings that the newest snapshot follows
}

// run makes a snapshot whenever changes are missing.
func (s *metadataSource) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.missing:
		}
		for s.replace(ctx) {
		}
	}
}

// replace begins to capture anew and makes a snapshot. It reports whether to try again:
// too much changed meanwhile.
func (s *metadataSource) replace(ctx context.Context) (again bool) {
	for len(s.capture.Next(captureLimit, time.Time{})) > 0 {
		continue // what precedes a gap, after a snapshot that failed
	}
	s.capture.Resume()
	number := s.capture.Status().Resumed
	chunks, whole, err := s.walk(ctx, number)
	if err != nil {
		// The store repeats what fails: the writer has ended, or the metadata cannot be
		// read. The next checkpoint reports that.
		return s.writer.Err() == nil && wait(ctx, minRetry)
	}
	if !whole {
		return true
	}
	s.mu.Lock()
	s.until = s.capture.Status().Last
	s.snapshot = snapshotFrames(time.Now(), s.until, chunks)
	s.held, s.number = false, number
	s.mu.Unlock()
	s.writer.Wake()
	return false
}

// Without a bucket, a change says something about the log.
var (
	metaBegin     = []byte("begin")     // the files of a snapshot follow
	metaSnapshot  = []byte("snapshot")  // the value is its list of chunks
	metaContinues = []byte("continues") // the transaction goes on in the next frame
)

// snapshotFrames returns a snapshot that is consistent after the changes of a
// transaction, of number 0 at once. All chunks are named, also those that earlier frames named, so that the log
// needs nothing from before.
func snapshotFrames(at time.Time, until uint64, chunks []storedChunk) []stream.Frame {
	mark := func(key, value []byte) stream.Frame {
		return stream.Frame{Time: at, Body: stream.Meta{Transaction: until, Changes: []stream.MetaChange{{Key: key, Value: value}}}}
	}
	frames := []stream.Frame{mark(metaBegin, nil)}
	for _, c := range chunks {
		frames = append(frames, stream.Frame{Time: at, Body: stream.File{Kind: KindMetadata, Name: c.name(), Ref: c.ref}})
	}
	return append(frames, mark(metaSnapshot, listOf(chunks)))
}

// awaitSnapshot waits until the newest snapshot in the log is followed by all changes,
// and returns the number of the capture's beginnings.
func (s *metadataSource) awaitSnapshot(ctx context.Context) (uint64, error) {
	for {
		s.mu.Lock()
		ready, number := !s.held && len(s.snapshot) == 0, s.number
		s.mu.Unlock()
		if ready && s.continues(number) {
			return number, nil
		}
		select {
		case <-s.writer.Done():
			return 0, s.writer.Err()
		default:
		}
		if !wait(ctx, captureInterval) {
			return 0, ctx.Err()
		}
	}
}

// Next implements stream.Source.
func (s *metadataSource) Next(_ context.Context, limit int, until time.Time) ([]stream.Frame, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held {
		return nil, nil
	}
	if len(s.snapshot) > 0 {
		frames := takeFrames(&s.snapshot, limit)
		s.passed(0)
		return frames, nil
	}
	if len(s.rest) == 0 {
		for _, redo := range s.capture.Next(limit, until) {
			s.rest = append(s.rest, framesOf(redo)...)
			s.passed(redo.Transaction)
		}
	}
	if len(s.rest) > 0 {
		return takeFrames(&s.rest, limit), nil
	}
	if status := s.capture.Status(); status.Paused && status.Empty {
		s.held, s.since = true, status.Oldest
		s.missing <- struct{}{}
	}
	return nil, nil
}

// passed notes that a transaction follows the snapshot.
func (s *metadataSource) passed(transaction uint64) {
	if len(s.snapshot) == 0 && transaction >= s.until {
		s.since = time.Time{}
	}
}

// takeFrames removes the first of frames, and returns about limit bytes.
func takeFrames(frames *[]stream.Frame, limit int) []stream.Frame {
	n := 0
	for size := 0; n < len(*frames) && (n == 0 || size < limit); n++ {
		size += frameSize((*frames)[n])
	}
	taken := (*frames)[:n:n]
	if *frames = (*frames)[n:]; len(*frames) == 0 {
		*frames = nil
	}
	return taken
}

// smallFrame is about the size of a frame without its content.
const smallFrame = 128

func frameSize(f stream.Frame) (size int) {
	if m, ok := f.Body.(stream.Meta); ok {
		for _, c := range m.Changes {
			size += changeSize(c)
		}
	}
	return size + smallFrame
}

func changeSize(c stream.MetaChange) int { return len(c.Key) + len(c.Value) + smallFrame }

// metaPiece is the size at which a transaction goes on in another frame.
const metaPiece = stream.MaxFrame / 4

// framesOf returns the frames of a transaction.
func framesOf(redo meta.Redo) (frames []stream.Frame) {
	var changes []stream.MetaChange
	size := 0
	add := func() {
		frames = append(frames, stream.Frame{Time: redo.Time, Body: stream.Meta{Transaction: redo.Transaction, Changes: changes}})
	}
	for _, c := range redo.Changes {
		if size > metaPiece {
			changes = append(changes, stream.MetaChange{Key: metaContinues})
			add()
			changes, size = nil, 0
		}
		changes = append(changes, stream.MetaChange(c))
		size += changeSize(stream.MetaChange(c))
	}
	add()
	return frames
}

// end leaves nothing to be read.
func (s *metadataSource) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held, s.since, s.snapshot, s.rest = true, time.Time{}, nil, nil
}

// Stored implements stream.Source.
func (s *metadataSource) Stored(uint64) {}

// Stream implements stream.Named.
func (s *metadataSource) Stream() stream.Stream { return stream.Stream{Kind: StreamMetadata} }

// Waiting implements stream.Source.
func (s *metadataSource) Waiting() stream.Waiting {
	s.mu.Lock()
	defer s.mu.Unlock()
	status := s.capture.Status()
	w := stream.Waiting{Bytes: status.Bytes, Oldest: status.Oldest}
	switch {
	case s.held || !s.since.IsZero():
		w.Oldest = s.since
	case len(s.rest) > 0:
		w.Oldest = s.rest[0].Time
	}
	for _, f := range slices.Concat(s.snapshot, s.rest) {
		w.Bytes += int64(frameSize(f))
	}
	return w
}
