package blobstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
)

// firstWindow and lastWindow are how many bytes are requested at a time of a file that is away: twice as many each time,
// while they are read in order.
const firstWindow, lastWindow = 4 << 20, 64 << 20

// remote reads a file that is away. It fetches a small one first. Of a large one it fetches what is read; if that is all of
// it, in order, and there is room, the file is then on this disk too.
type remote struct {
	store *Store
	ctx   context.Context //nolint:containedctx // of Open
	away  Away

	mu     sync.Mutex
	here   *Reader       // once the file is on this disk
	failed error         // why here is read although it is damaged; nil if it is not
	body   io.ReadCloser // of a window; nil between two
	next   int64         // offset of the next byte of body
	end    int64         // of the window
	window int64         // size
	begun  bool
	keep   *keeping // nil if nothing is kept
}

func (s *Store) openRemote(ctx context.Context, a Away) *remote {
	return &remote{store: s, ctx: ctx, away: a}
}

// readAt reads until p is full or the file ends.
func (r *remote) readAt(p []byte, off int64) (n int, err error) {
	for n < len(p) && err == nil {
		var more int
		more, err = r.read(p[n:], off+int64(n))
		n += more
	}
	return n, err
}

// read returns at least one byte or an error.
func (r *remote) read(p []byte, off int64) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if off >= r.away.Size {
		return 0, io.EOF
	}
	if len(p) == 0 {
		return 0, nil
	}
	if err := r.begin(off); err != nil {
		return 0, err
	}
	if r.here == nil {
		n, err := r.stream(p, off)
		if err == nil {
			return n, nil
		}
		err = fmt.Errorf("read blob %s: %w: %w", r.away.Ref, ErrAway, err)
		if !r.fallBack(err) {
			return 0, err
		}
	}
	n, err := r.here.ReadAt(p, off)
	if n > 0 {
		return n, nil // an error that lasts comes again
	}
	if err != nil && r.failed != nil {
		err = fmt.Errorf("%w, and elsewhere: %w", err, &CopyError{r.failed})
	}
	return 0, err
}

// fallBack has the file be read that is on this disk, although it is damaged, once it cannot be read elsewhere.
func (r *remote) fallBack(err error) bool {
	if r.ctx.Err() != nil {
		return false
	}
	r.store.fetches.damaged.Delete(r.away.Ref)
	here, openErr := r.store.openFile(r.away.Ref)
	if openErr == nil {
		r.begun, r.here, r.failed = true, here, err
	}
	return openErr == nil
}

// begin decides with the first read whether the whole file is fetched first, and whether what is read is kept.
func (r *remote) begin(off int64) error {
	if r.begun {
		return nil
	}
	f := r.store.fetches
	here := f.intact(r.away.Ref) // since Open
	if !here && r.away.Size <= f.whole && f.room(r.away.Size) == nil {
		err := r.store.Fetch(r.ctx, r.away.Ref)
		streams := errors.Is(err, errNotKept) || errors.Is(err, ErrNotFound) || errors.Is(err, ErrClosed) // the last two since Open
		if err != nil && !streams {
			if r.fallBack(err) {
				return nil
			}
			return err
		}
		here = err == nil
	}
	r.begun = true
	if here {
		var err error
		if r.here, err = r.store.openFile(r.away.Ref); err == nil {
			return nil
		}
		r.here = nil // evicted again, or damaged
	}
	if off == 0 {
		r.keep = f.keep(r.ctx, r.away)
	}
	return nil
}

// stream reads the next bytes of a window, and begins one where there is none for the offset.
func (r *remote) stream(p []byte, off int64) (int, error) {
	if err := r.seek(off); err != nil {
		return 0, err
	}
	n, err := r.body.Read(p[:min(int64(len(p)), r.end-off)])
	r.keep.add(p[:n], off)
	r.next += int64(n)
	if r.next == r.end {
		err = r.closeBody()
	} else if err == io.EOF {
		err = fmt.Errorf("it ends after %d of %d bytes: %w", r.next, r.away.Size, ErrDamaged)
	}
	if n > 0 {
		return n, nil // an error that lasts comes again
	}
	return 0, err
}

func (r *remote) seek(off int64) error {
	if r.body != nil && off == r.next {
		return nil
	}
	if err := r.closeBody(); err != nil {
		return err
	}
	if off == r.next && r.window > 0 {
		r.window = min(2*r.window, lastWindow)
	} else {
		r.window = firstWindow
	}
	n := min(r.window, r.away.Size-off)
	body, err := r.store.fetches.open(r.ctx, r.away, off, n)
	if err != nil {
		return err
	}
	r.body, r.next, r.end = body, off, off+n
	return nil
}

func (r *remote) closeBody() error {
	if r.body == nil {
		return nil
	}
	body := r.body
	r.body = nil
	return body.Close()
}

func (r *remote) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.closeBody()
	r.keep.end()
	r.keep, r.begun = nil, true
	if r.here != nil {
		err = errors.Join(err, r.here.Close())
	}
	return err
}

// keeping writes what is read of a file to this disk, until it is whole.
type keeping struct {
	fetches *fetches
	away    Away
	again   bool    // the file is damaged here
	writer  *Writer // nil once it has failed
}

// keep returns the keeping of a file that is about to be read, nil if there is no room or another one keeps it.
func (g *fetches) keep(ctx context.Context, a Away) *keeping {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed || g.flying[a.Ref] != nil || g.keeping[a.Ref] || g.room(a.Size) != nil {
		return nil
	}
	w, err := g.store.Create(context.WithoutCancel(ctx))
	if err != nil {
		return nil
	}
	k := &keeping{fetches: g, away: a, again: g.isDamaged(a.Ref), writer: w}
	g.keeping[a.Ref] = true
	g.store.local.Add(fileSize(a.Size))
	return k
}

// add adds bytes that were read. Bytes out of order end the keeping.
func (k *keeping) add(p []byte, off int64) {
	if k == nil || k.writer == nil {
		return
	}
	if off == k.writer.Size() {
		if _, err := k.writer.Write(p); err == nil {
			return
		}
	}
	k.abort()
}

func (k *keeping) abort() {
	_ = k.writer.Abort()
	k.writer = nil
}

// end publishes the file, if it is whole.
func (k *keeping) end() {
	if k == nil {
		return
	}
	g := k.fetches
	g.mu.Lock()
	whole := k.writer != nil && k.writer.Size() == k.away.Size && !g.closed
	if whole {
		g.tasks.Go(func() {
			defer k.release()
			_ = g.finish(k.writer, k.away.Ref, k.again) // without it, the file stays away
		})
	}
	g.mu.Unlock()
	if whole {
		return
	}
	if k.writer != nil {
		k.abort()
	}
	k.release()
}

func (k *keeping) release() {
	k.fetches.mu.Lock()
	defer k.fetches.mu.Unlock()
	delete(k.fetches.keeping, k.away.Ref)
	k.fetches.store.local.Add(-fileSize(k.away.Size))
}
