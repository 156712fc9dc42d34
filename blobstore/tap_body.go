package blobstore

import (
	"context"
	"errors"
	"slices"
	"time"
)

// Body is a file that was published and waits to be copied.
type Body struct {
	Ref  Ref
	Time time.Time // when it was published
	Size int64     // in bytes

	taken   bool
	removed bool
	kept    *Reader // of a file that was removed before it was taken
}

func (b *Body) drop() {
	if b.kept != nil {
		_ = b.kept.Close()
	}
}

// tapBodies bounds the files that wait. Those that are published beyond it must be offered again.
const tapBodies = 1 << 16

// publish notes that a file was published.
func (t *Tap) publish(ref Ref, size int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.bodies) >= tapBodies {
		return
	}
	t.offer(&Body{Ref: ref, Time: time.Now(), Size: size})
}

func (t *Tap) offer(b *Body) {
	if t.closed || t.pending[b.Ref] != nil {
		return
	}
	t.pending[b.Ref] = b
	t.bodies = append(t.bodies, b)
	t.uncopied += b.Size
	t.wake()
}

// Offer lets a file that was published before wait to be copied too, once no other waits. The same file waits only once.
func (t *Tap) Offer(ctx context.Context, ref Ref, size int64) error {
	for {
		t.mu.Lock()
		if t.closed || len(t.bodies) == 0 {
			t.offer(&Body{Ref: ref, Time: time.Now(), Size: size})
			t.mu.Unlock()
			return nil
		}
		changed := t.changed
		t.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Copied returns once none of the files waits that waited when it was called.
func (t *Tap) Copied(ctx context.Context) error {
	t.mu.Lock()
	var wait []*Body
	for _, b := range t.pending {
		wait = append(wait, b)
	}
	t.mu.Unlock()
	for _, b := range wait {
		for {
			t.mu.Lock()
			waits, changed := t.pending[b.Ref] == b, t.changed
			t.mu.Unlock()
			if !waits {
				break
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return nil
}

// Take returns the oldest file that waits, for the caller to copy, and a Reader of it. Without one it returns nil. It passes
// over files that were removed and are not kept. The caller closes the Reader and calls Done.
func (t *Tap) Take() (*Body, *Reader, error) {
	for {
		t.mu.Lock()
		if len(t.bodies) == 0 {
			t.mu.Unlock()
			return nil, nil, nil
		}
		b := t.bodies[0]
		t.mu.Unlock()
		r, err := t.store.openFile(b.Ref) // before it is taken: a removal keeps only what is not
		r, mine := t.take(b, r)
		switch {
		case !mine: // another call was faster
		case r != nil:
			return b, r, nil
		case !errors.Is(err, ErrNotFound):
			return b, nil, err
		default:
			t.Done(b)
		}
	}
}

// take takes a file with its Reader, nil for none, or with the one that its removal kept. It closes the other. mine is false
// if the file does not wait any more.
func (t *Tap) take(b *Body, r *Reader) (taken *Reader, mine bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	mine = len(t.bodies) > 0 && t.bodies[0] == b
	if r != nil && (!mine || b.kept != nil) {
		_ = r.Close()
	}
	if !mine {
		return nil, false
	}
	if b.kept != nil {
		r = b.kept
	}
	t.bodies = t.bodies[1:]
	t.taken = append(t.taken, b)
	b.taken, b.kept = true, nil
	return r, true
}

// Done ends the copying of a file, and reports whether it was removed since it was taken.
func (t *Tap) Done(b *Body) (removed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pending[b.Ref] == b {
		delete(t.pending, b.Ref)
		t.uncopied -= b.Size
	}
	t.taken = slices.DeleteFunc(t.taken, func(other *Body) bool { return other == b })
	delete(t.held, b.Ref)
	if !t.closed {
		close(t.changed)
		t.changed = make(chan struct{})
	}
	return b.removed
}

// Bodies returns how many bytes the files have that are not done, and the time of the oldest, zero if there is none.
func (t *Tap) Bodies() (bytes int64, oldest time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.bodies) > 0 {
		oldest = t.bodies[0].Time
	}
	for _, b := range t.taken {
		if oldest.IsZero() || b.Time.Before(oldest) {
			oldest = b.Time
		}
	}
	return t.uncopied, oldest
}

// removing is called before a file is removed: one that waits to be copied remains readable.
func (t *Tap) removing(ref Ref) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.pending[ref]
	if b == nil || b.removed {
		return
	}
	b.removed = true
	if b.taken || !t.keep(ref, b.Size) {
		return
	}
	r, err := t.store.openFile(ref)
	if err != nil {
		delete(t.held, ref)
		return
	}
	b.kept = r
}

// removed notes that a file was removed. Done says so of one that is being copied.
func (t *Tap) removed(ref Ref) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pending[ref] == nil {
		t.append(tapChange{removed: ref})
	}
}
