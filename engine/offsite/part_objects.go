package offsite

import (
	"context"
	"errors"
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
	mine       bool   // the pieces of the journal that are known are of this machine
	repository string // its id
	tap        *blobstore.Tap
	lanes      []*bodyLane
	bodies     chan struct{} // a body waits
	cancel     context.CancelFunc
	tasks      sync.WaitGroup

	passing    sync.Mutex
	passedOver map[string]error // why bodies could not be read, by name
}

var _ part = (*objectsPart)(nil)

func newObjectsPart(c *core.Core, u *unreadable) *objectsPart {
	return &objectsPart{core: c, unreadable: u}
}

func (p *objectsPart) start(w *stream.Writer, known *known) (err error) {
	p.writer, p.known, p.repository, p.bodies = w, known, known.repository, make(chan struct{}, 1)
	p.mine, p.passedOver = !known.foreign, map[string]error{}
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
	ends := map[piece]int64{}
	for name, ref := range p.known.Names("", KindSegment) {
		if segment, from, err := parsePiece(name); err == nil {
			ends[segment] = max(ends[segment], from+ref.Size)
		}
	}
	for _, s := range p.core.Blobs.Journal() {
		known := int64(0)
		for segment, size := range ends {
			if p.isOf(segment, s) {
				known = max(known, size)
			}
		}
		if logged, mark := p.known.JournalEnd(uint64(s.Number)); mark == "" || mark == s.Mark || s.Err != nil && p.mine {
			known = max(known, int64(logged))
		}
		if s.Err == nil {
			known = min(known, s.Size)
		}
		if known > 0 {
			end = blobstore.PositionOf(s.Number, known)
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
	segments, failed, err := p.segments(ctx)
	if err != nil {
		return nil, fmt.Errorf("copy the journal: %w", err)
	}
	var bodies []stream.Entry
	var unread error
	here, err := p.bodiesHere(ctx)
	if err == nil {
		bodies, err = p.allBodies(ctx, here)
	}
	if err == nil {
		unread, err = p.unreadBodies()
	}
	if err != nil {
		return nil, fmt.Errorf("copy large objects: %w", err)
	}
	p.unreadable.note(p.core.Log, "", errors.Join(failed, unread))
	return append(segments, bodies...), nil
}
