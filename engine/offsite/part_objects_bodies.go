package offsite

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"holdfast/blobstore"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/objects"
	"holdfast/engine/offsite/stream"
)

const (
	// bodiesAtOnce is how many bodies of large objects are stored at once.
	bodiesAtOnce = 4
	// liveBatch is how many blobs are looked up at a time.
	liveBatch = 1000
)

// presentBodies are the bodies that are here at a moment, and those that the store had then.
type presentBodies struct {
	refs []blobstore.Ref
	had  map[string]stream.Reference
}

// bodiesHere returns the bodies that are here, and lets those be copied that the store lacks.
func (p *objectsPart) bodiesHere(ctx context.Context) (b presentBodies, err error) {
	if err := p.core.Meta.Flush(); err != nil { // so that what was published has its record
		return b, err
	}
	b.had = p.known.Names("", KindBlob)
	sizes := map[blobstore.Ref]int64{} // of those that the store may lack
	if err := p.core.Blobs.Walk(func(ref blobstore.Ref, size int64, _ time.Time) error {
		b.refs = append(b.refs, ref)
		if _, known := p.known.Get("", KindBlob, string(ref)); !known {
			sizes[ref] = size
		}
		if len(sizes) < liveBatch {
			return ctx.Err()
		}
		return p.offer(ctx, sizes)
	}); err != nil {
		return b, err
	}
	return b, p.offer(ctx, sizes)
}

// allBodies returns the entries of all bodies that were here, once they have been stored. It has those that were removed
// since: they come back in a recovery that has no bytes of what replaced them. It has those, too, that the store has and that are
// lost here although objects need them, and lists them as away. It uses b up.
func (p *objectsPart) allBodies(ctx context.Context, b presentBodies) (entries []stream.Entry, err error) {
	if err := p.tap.Copied(ctx); err != nil {
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
		delete(b.had, e.Name)
	}
	for _, body := range b.refs {
		name := string(body)
		ref, some := p.known.Get("", KindBlob, name)
		if !some {
			ref, some = b.had[name]
		}
		delete(b.had, name)
		if some && !listed[name] {
			entries = append(entries, stream.Entry{Kind: KindBlob, Name: name, Ref: ref})
		}
	}
	needed, err := p.live(slices.Sorted(maps.Keys(b.had)))
	if err != nil {
		return nil, err
	}
	var lost []blobstore.Away
	for _, name := range needed {
		entries = append(entries, stream.Entry{Kind: KindBlob, Name: name, Ref: b.had[name]})
		lost = append(lost, awayOf(p.repository, name, b.had[name]))
		delete(b.had, name)
	}
	if err := p.listAgain(lost); err != nil {
		return nil, err
	}
	for name := range b.had { // they were gone already, which the tap may have forgotten
		p.known.Drop("", KindBlob, name)
	}
	return entries, nil
}

// listAgain lists bodies as away that are lost here, and so can be read from the store.
func (p *objectsPart) listAgain(lost []blobstore.Away) error {
	listed, err := p.core.Blobs.List(lost)
	if len(listed) > 0 {
		p.core.Log.Error("large objects were not on this disk, nor listed as being in the off-site copy only: they are now, and are read from there", "objects", len(listed), "such as", listed[0].Ref)
	}
	return err
}

// live returns those of some bodies that objects need.
func (p *objectsPart) live(names []string) (live []string, err error) {
	err = p.core.Meta.View(func(tx *meta.Tx) error {
		live = slices.DeleteFunc(names, func(name string) bool { return !tx.BlobLive(name) })
		return nil
	})
	return live, err
}

// bodiesError says why bodies cannot be copied, nil for none.
func bodiesError(names []string, why error) error {
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("%d large objects, such as %s: %w", len(names), names[0], why)
}

// unreadBodies says which bodies could not be read. It forgets those that nothing needs any more.
func (p *objectsPart) unreadBodies() (unread, err error) {
	p.passing.Lock()
	defer p.passing.Unlock()
	needed, err := p.live(slices.Sorted(maps.Keys(p.passedOver)))
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(p.passedOver, func(name string, _ error) bool { return !slices.Contains(needed, name) })
	if len(needed) > 0 {
		unread = bodiesError(needed, p.passedOver[needed[0]])
	}
	return unread, nil
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

// listedBodies returns the entries of the bodies that are listed as away. One that is here too, and was in the copy of another
// machine, is copied as if it were not listed.
func (p *objectsPart) listedBodies() (entries []stream.Entry, err error) {
	bodies, err := listedBodies(p.core, func(bool) bool { return true })
	for _, a := range bodies {
		ref, err := locate(p.repository, a)
		if _, other := errors.AsType[*objects.OtherCopyError](err); other && !p.core.Blobs.IsAway(a.Ref) {
			continue
		}
		if err != nil {
			return nil, err
		}
		entries = append(entries, stream.Entry{Kind: KindBlob, Name: string(a.Ref), Ref: ref})
	}
	return entries, err
}

// bodyQueue describes the bodies that are not stored yet. Their frames come from the lanes.
type bodyQueue struct{ tap *blobstore.Tap }

var _ stream.Source = bodyQueue{}

// Next implements stream.Source.
func (bodyQueue) Next(context.Context, int, time.Time) ([]stream.Frame, error) { return nil, nil }

// Stored implements stream.Source.
func (bodyQueue) Stored(uint64) {}

// Stream implements stream.Named.
func (bodyQueue) Stream() stream.Stream { return stream.Stream{Kind: StreamLargeObjects} }

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
	// What replaces the object once it is known to be copied comes after it in the log.
	l.add(stream.Frame{Time: b.Time, Body: stream.File{Kind: KindBlob, Name: name, Ref: ref}})
	l.part.known.Put("", KindBlob, name, ref)
	l.part.noteBody(b.Ref, nil)
	if l.part.tap.Done(b) {
		l.part.known.Drop("", KindBlob, name)
		l.add(stream.Frame{Time: time.Now(), Body: stream.FileDrop{Kind: KindBlob, Name: name}})
	}
	l.part.writer.Wake()
	return true
}

// giveUp passes over a body that cannot be read here. The next checkpoint notes it, and a recovery leaves the object out.
func (p *objectsPart) giveUp(b *blobstore.Body, err error) {
	p.core.Log.Error("an object cannot be read and is not in the off-site copy", "blob", b.Ref, "error", err)
	p.noteBody(b.Ref, err)
	p.tap.Done(b)
}

// noteBody notes why a body could not be read, nil if it could.
func (p *objectsPart) noteBody(ref blobstore.Ref, err error) {
	p.passing.Lock()
	defer p.passing.Unlock()
	if err == nil {
		delete(p.passedOver, string(ref))
	} else {
		p.passedOver[string(ref)] = err
	}
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

// Stream implements stream.Named.
func (*bodyLane) Stream() stream.Stream { return stream.Stream{Kind: StreamLargeObjects} }

// Waiting implements stream.Source.
func (l *bodyLane) Waiting() (w stream.Waiting) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.ready) > 0 {
		w.Oldest = l.ready[0].Time
	}
	return w
}
