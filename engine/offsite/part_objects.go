package offsite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/blobstore"
	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/offsite/stream"
)

const (
	// bodiesAtOnce is how many bodies of large objects are stored at once.
	bodiesAtOnce = 4
	// segmentPiece is the size of the pieces in which a checkpoint has a segment of the journal, and tailPiece that of
	// those of its last, incomplete piece while it grows. What is smaller is in the catalog.
	segmentPiece = 4 << 20
	tailPiece    = 256 << 10
	// smallPiece is the largest piece of a complete segment that is in the catalog.
	smallPiece = 16 << 10
	// liveBatch is how many blobs are looked up at a time.
	liveBatch = 1000
)

// objectsPart copies objects: the blob store's journal, with small objects and the notes of all, as it grows,
// and the bodies of large ones as files. Exports are not copied: the next backup makes new ones.
type objectsPart struct {
	core       *core.Core
	unreadable *unreadable
	has        atomic.Pointer[known] // what the store has; nil between runs

	writer     *stream.Writer // of the run, as are all that follow
	known      *known
	repository string // its id
	tap        *blobstore.Tap
	lanes      []*bodyLane
	bodies     chan struct{} // a body waits
	cancel     context.CancelFunc
	tasks      sync.WaitGroup
}

var _ part = (*objectsPart)(nil)

func newObjectsPart(c *core.Core, u *unreadable) *objectsPart {
	return &objectsPart{core: c, unreadable: u}
}

func (p *objectsPart) start(w *stream.Writer, known *known) (err error) {
	p.writer, p.known, p.repository, p.bodies = w, known, known.repository, make(chan struct{}, 1)
	p.has.Store(known)
	if p.tap, err = p.core.Blobs.Tap(p.end(), p.wake); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	w.Add(journalSource{p.tap, known})
	w.Add(bodyQueue{p.tap})
	p.lanes = nil
	for range bodiesAtOnce {
		lane := &bodyLane{part: p}
		p.lanes = append(p.lanes, lane)
		w.Add(lane)
		p.tasks.Go(func() { lane.run(ctx) })
	}
	return nil
}

// end returns up to where the log has the journal, 0 if it has none of the segments that are here.
func (p *objectsPart) end() (end blobstore.Position) {
	ends := map[string]int64{} // by segment and mark
	for name, ref := range p.known.Names("", KindSegment) {
		if segment, from, err := parsePiece(name); err == nil {
			ends[segment.prefix()] = max(ends[segment.prefix()], from+ref.Size)
		}
	}
	for _, s := range p.core.Blobs.Journal() {
		known := ends[pieceOf(s).prefix()]
		if logged, mark := p.known.JournalEnd(uint64(s.Number)); mark == "" || mark == s.Mark {
			known = max(known, int64(logged))
		}
		if known > 0 {
			end = blobstore.PositionOf(s.Number, min(known, s.Size))
		}
	}
	return end
}

// wake is called by the tap.
func (p *objectsPart) wake() {
	p.writer.Wake()
	p.wakeLane()
}

func (p *objectsPart) wakeLane() {
	select {
	case p.bodies <- struct{}{}:
	default:
	}
}

func (p *objectsPart) stop() {
	p.has.Store(nil)
	p.cancel()
	p.tasks.Wait()
	p.tap.Close()
}

// isCopied reports whether the store is known to have a body.
func (p *objectsPart) isCopied(ref blobstore.Ref) bool {
	known := p.has.Load()
	if known == nil {
		return false
	}
	_, ok := known.Get("", KindBlob, string(ref))
	return ok
}

func (p *objectsPart) entries(ctx context.Context) ([]stream.Entry, error) {
	segments, err := p.segments(ctx)
	if err != nil {
		return nil, fmt.Errorf("copy the journal: %w", err)
	}
	bodies, err := p.allBodies(ctx)
	if err != nil {
		return nil, fmt.Errorf("copy large objects: %w", err)
	}
	return append(segments, bodies...), nil
}

// piece names a segment of the journal in the catalog: its mark tells it from one of another machine.
type piece struct {
	number uint32
	mark   string
}

func pieceOf(s blobstore.Segment) piece { return piece{s.Number, s.Mark} }

func (p piece) prefix() string { return fmt.Sprintf("%08x-%s-", p.number, p.mark) }

func (p piece) name(from int64) string { return fmt.Sprintf("%s%08x", p.prefix(), from) }

func parsePiece(name string) (p piece, from int64, err error) {
	parts := strings.Split(name, "-")
	if len(parts) == 3 {
		_, err = fmt.Sscanf(parts[0]+" "+parts[2], "%08x %08x", &p.number, &from)
		p.mark = parts[1]
	}
	if err != nil || p.name(from) != name {
		return p, from, fmt.Errorf("%w: piece of a journal %q", stream.ErrVersion, name)
	}
	return p, from, nil
}

// nextPiece returns the size of the piece of a segment at an offset. Pieces that are complete stay as they are while it grows.
func nextPiece(s blobstore.Segment, from int64) int64 {
	left := s.Size - from
	switch {
	case left >= segmentPiece:
		return segmentPiece
	case s.Complete:
		return left
	default:
		return min(left, tailPiece)
	}
}

// segments returns the entries of the journal, and forgets the pieces that larger ones have replaced. Of a segment that
// cannot be read it returns what the store has.
func (p *objectsPart) segments(ctx context.Context) (entries []stream.Entry, err error) {
	current := map[string]bool{}
	var failed error
	defer func() { p.unreadable.note(p.core.Log, "", failed) }()
	for _, s := range p.core.Blobs.Journal() {
		some, err := p.segment(ctx, s)
		if errors.Is(err, blobstore.ErrNotFound) { // compacted meanwhile: the log has what lives
			continue
		}
		if err != nil && (ctx.Err() != nil || p.writer.Err() != nil) {
			return nil, err
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("segment %d of the journal: %w", s.Number, err))
			some = p.storedPieces(s)
		}
		for _, e := range some {
			current[e.Name] = true
		}
		entries = append(entries, some...)
	}
	for name := range p.known.Names("", KindSegment) {
		if !current[name] {
			p.known.Drop("", KindSegment, name)
		}
	}
	return entries, nil
}

// storedPieces returns the entries of a segment that the store has.
func (p *objectsPart) storedPieces(s blobstore.Segment) []stream.Entry {
	return slices.DeleteFunc(p.known.Entries("", KindSegment), func(e stream.Entry) bool { return !strings.HasPrefix(e.Name, pieceOf(s).prefix()) })
}

func (p *objectsPart) segment(ctx context.Context, s blobstore.Segment) (entries []stream.Entry, err error) {
	f, err := p.core.Blobs.OpenSegment(s.Number)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for from := int64(0); from < s.Size; {
		n := nextPiece(s, from)
		e := stream.Entry{Kind: KindSegment, Name: pieceOf(s).name(from)}
		content := io.NewSectionReader(f, from, n)
		var known bool
		switch e.Ref, known = p.known.Get("", KindSegment, e.Name); {
		case n <= smallPiece || !s.Complete && n < tailPiece:
			e.Ref, e.Data = stream.Reference{}, make([]byte, n)
			_, err = io.ReadFull(content, e.Data)
		case known && e.Ref.Size == n && e.Ref.ID > 0:
		default:
			e.Ref, err = p.writer.Store(ctx, content)
		}
		if err != nil {
			return nil, err
		}
		p.known.Put("", KindSegment, e.Name, referenceOf(e))
		entries, from = append(entries, e), from+n
	}
	return entries, nil
}

// allBodies returns the entries of all bodies, once those have been stored that were there when it was called.
func (p *objectsPart) allBodies(ctx context.Context) (entries []stream.Entry, err error) {
	if err := p.core.Meta.Flush(); err != nil { // so that what was published has its record
		return nil, err
	}
	before := p.known.Names("", KindBlob)
	var here []blobstore.Ref
	sizes := map[blobstore.Ref]int64{} // of those that the store may lack
	if err := p.core.Blobs.Walk(func(ref blobstore.Ref, size int64, _ time.Time) error {
		here = append(here, ref)
		if _, known := p.known.Get("", KindBlob, string(ref)); !known {
			sizes[ref] = size
		}
		if len(sizes) < liveBatch {
			return ctx.Err()
		}
		return p.offer(ctx, sizes)
	}); err != nil {
		return nil, err
	}
	if err := errors.Join(p.offer(ctx, sizes), p.tap.Copied(ctx)); err != nil {
		return nil, err
	}
	// What is listed as away comes first: it is in the store, whether or not it comes or leaves meanwhile.
	entries, err = p.listedBodies()
	if err != nil {
		return nil, err
	}
	listed := map[string]bool{}
	for _, e := range entries {
		listed[e.Name] = true
		delete(before, e.Name)
	}
	for _, ref := range here {
		delete(before, string(ref))
		if known, ok := p.known.Get("", KindBlob, string(ref)); ok && !listed[string(ref)] {
			entries = append(entries, stream.Entry{Kind: KindBlob, Name: string(ref), Ref: known})
		}
	}
	for name := range before { // removed, which the tap may have forgotten
		p.known.Drop("", KindBlob, name)
	}
	return entries, nil
}

// offer lets those bodies be copied that belong to an object, and clears the map.
func (p *objectsPart) offer(ctx context.Context, sizes map[blobstore.Ref]int64) error {
	defer clear(sizes)
	if err := p.core.Meta.View(func(tx *meta.Tx) error {
		for ref := range sizes {
			if !tx.BlobKnown(string(ref)) {
				delete(sizes, ref)
			}
		}
		return tx.Exports().All(func(x model.Export) error {
			delete(sizes, blobstore.Ref(x.Blob))
			return nil
		})
	}); err != nil {
		return err
	}
	for ref, size := range sizes {
		if err := p.tap.Offer(ctx, ref, size); err != nil {
			return err
		}
	}
	return nil
}

// listedBodies returns the entries of the bodies that are listed as away.
func (p *objectsPart) listedBodies() (entries []stream.Entry, err error) {
	bodies, err := listedBodies(p.core, func(bool) bool { return true })
	for _, a := range bodies {
		ref, err := locate(p.repository, a)
		if err != nil {
			return nil, err
		}
		entries = append(entries, stream.Entry{Kind: KindBlob, Name: string(a.Ref), Ref: ref})
	}
	return entries, err
}

// journalSource is the journal, and what is removed from the blob store.
type journalSource struct {
	tap   *blobstore.Tap
	known *known
}

var _ stream.Source = journalSource{}

// Next implements stream.Source.
func (s journalSource) Next(_ context.Context, limit int, until time.Time) (frames []stream.Frame, err error) {
	for len(frames) == 0 {
		changes, err := s.tap.Next(limit, until)
		if err != nil || len(changes) == 0 {
			return nil, err
		}
		for _, c := range changes {
			if body := s.body(c); body != nil {
				frames = append(frames, stream.Frame{Time: c.Time, Body: body})
			}
		}
	}
	return frames, nil
}

// body returns the frame of a change, nil if the store has nothing that it changes.
func (s journalSource) body(c blobstore.Change) stream.Body {
	switch {
	case c.Removed != "":
		if _, known := s.known.Get("", KindBlob, string(c.Removed)); !known {
			return nil
		}
		s.known.Drop("", KindBlob, string(c.Removed))
		return stream.FileDrop{Kind: KindBlob, Name: string(c.Removed)}
	case len(c.Bytes) == 0:
		return stream.JournalDrop{Segment: uint64(c.Segment)}
	}
	return stream.Journal{Segment: uint64(c.Segment), From: uint64(c.From), Bytes: c.Bytes}
}

// Stored implements stream.Source.
func (journalSource) Stored(uint64) {}

// Waiting implements stream.Source.
func (s journalSource) Waiting() (w stream.Waiting) {
	w.Bytes, w.Oldest = s.tap.Waiting()
	return w
}

// bodyQueue describes the bodies that are not stored yet. Their frames come from the lanes.
type bodyQueue struct{ tap *blobstore.Tap }

var _ stream.Source = bodyQueue{}

// Next implements stream.Source.
func (bodyQueue) Next(context.Context, int, time.Time) ([]stream.Frame, error) { return nil, nil }

// Stored implements stream.Source.
func (bodyQueue) Stored(uint64) {}

// Waiting implements stream.Source.
func (q bodyQueue) Waiting() (w stream.Waiting) {
	w.Later, w.Oldest = q.tap.Bodies()
	return w
}

// bodyLane stores one body after the other, in the order in which they were published, so that its frames
// can have those times however long another body takes.
type bodyLane struct {
	part *objectsPart

	mu    sync.Mutex
	ready []stream.Frame
}

var _ stream.Source = (*bodyLane)(nil)

func (l *bodyLane) run(ctx context.Context) {
	for {
		b, r, err := l.part.tap.Take()
		switch {
		case err != nil:
			l.part.giveUp(b, err)
		case b != nil:
			l.part.wakeLane() // another may wait
			if !l.store(ctx, b, r) {
				return
			}
		default:
			select {
			case <-ctx.Done():
				return
			case <-l.part.bodies:
			}
		}
	}
}

// store stores a body. It returns false when the run ends.
func (l *bodyLane) store(ctx context.Context, b *blobstore.Body, r *blobstore.Reader) bool {
	ref, err := l.part.writer.Store(ctx, r)
	_ = r.Close()
	switch {
	case err != nil && (ctx.Err() != nil || l.part.writer.Err() != nil):
		return false
	case err != nil:
		l.part.giveUp(b, err)
		return true
	}
	name := string(b.Ref)
	l.part.known.Put("", KindBlob, name, ref)
	l.add(stream.Frame{Time: b.Time, Body: stream.File{Kind: KindBlob, Name: name, Ref: ref}})
	if l.part.tap.Done(b) {
		l.part.known.Drop("", KindBlob, name)
		l.add(stream.Frame{Time: time.Now(), Body: stream.FileDrop{Kind: KindBlob, Name: name}})
	}
	l.part.writer.Wake()
	return true
}

// giveUp passes over a body that cannot be read here. The scrub reports it, and a recovery leaves the object out.
func (p *objectsPart) giveUp(b *blobstore.Body, err error) {
	p.core.Log.Error("an object cannot be read and is not in the off-site copy", "blob", b.Ref, "error", err)
	p.tap.Done(b)
}

func (l *bodyLane) add(f stream.Frame) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ready = append(l.ready, f)
}

// Next implements stream.Source.
func (l *bodyLane) Next(_ context.Context, _ int, until time.Time) ([]stream.Frame, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for n < len(l.ready) && (n == 0 || until.IsZero() || !l.ready[n].Time.After(until)) {
		n++
	}
	frames := l.ready[:n:n]
	l.ready = l.ready[n:]
	return frames, nil
}

// Stored implements stream.Source.
func (*bodyLane) Stored(uint64) {}

// Waiting implements stream.Source.
func (l *bodyLane) Waiting() (w stream.Waiting) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.ready) > 0 {
		w.Oldest = l.ready[0].Time
	}
	return w
}
