package offsite

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"holdfast/blobstore"
	"holdfast/engine/core"
	"holdfast/engine/offsite/stream"
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
	var bodies []stream.Entry
	here, err := p.bodiesHere(ctx)
	if err == nil {
		bodies, err = p.allBodies(ctx, here)
	}
	if err != nil {
		return nil, fmt.Errorf("copy large objects: %w", err)
	}
	return append(segments, bodies...), nil
}
