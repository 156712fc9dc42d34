package blobstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// ErrAway means that a file is not on this disk, and could not be fetched now.
var ErrAway = errors.New("blob is not on this disk and could not be fetched")

// errNotKept means that a file could be fetched, but not written to this disk.
var errNotKept = errors.New("it cannot be kept on this disk")

// CopyError says why a file that is damaged on this disk could not be read elsewhere either. It belongs to the error of reading
// the file, and does not stand for its cause: that this disk has the file counts.
type CopyError struct{ Err error }

// Error implements error.
func (e *CopyError) Error() string { return e.Err.Error() }

// fetchesAtOnce is the number of files that are fetched at the same time.
const fetchesAtOnce = 4

// fetches are the files that are being fetched.
type fetches struct {
	store *Store
	from  func(ctx context.Context, a Away, from, n int64) (io.ReadCloser, error)
	room  func(size int64) error
	whole int64 // Options.FetchWhole
	// damaged are the Refs of listed files that are damaged on this disk, and read elsewhere, see ReadCopy.
	damaged sync.Map
	slots   chan struct{}
	tasks   sync.WaitGroup

	mu      sync.Mutex
	flying  map[Ref]*fetch
	keeping map[Ref]bool // files that readers of the whole write
	closed  bool
}

// fetch is one file that is being fetched for one or more callers.
type fetch struct {
	cancel  context.CancelFunc
	callers int
	again   bool // the file is damaged here
	done    chan struct{}
	err     error // set before done is closed
}

// ReadCopy lets a file that is damaged on this disk be read elsewhere, and reports whether it is listed. It stays here until
// a fetch has brought it whole, which then takes its place. Once reading it elsewhere fails, it is read here again.
func (s *Store) ReadCopy(ref Ref) bool {
	if _, err := s.away.find(ref); s.fetches.from == nil || err != nil {
		return false
	}
	s.fetches.damaged.Store(ref, true)
	return true
}

// intact reports whether a file is here, and not known to be damaged.
func (g *fetches) intact(ref Ref) bool {
	return !g.isDamaged(ref) && g.store.onDisk(ref)
}

// isDamaged reports whether a file is read elsewhere because it is damaged here.
func (g *fetches) isDamaged(ref Ref) bool {
	_, damaged := g.damaged.Load(ref)
	return damaged
}

// Fetch brings a file that is away to this disk, or again after ReadCopy. Callers share one fetch, which ends when none is
// left. It returns ErrNotFound for what is neither here nor away, and ErrAway with the cause after a failure, as when there is
// no room.
func (s *Store) Fetch(ctx context.Context, ref Ref) error {
	if s.fetches.intact(ref) {
		return nil
	}
	a, err := s.away.find(ref)
	if err != nil {
		return fmt.Errorf("fetch blob %s: %w", ref, err)
	}
	f, err := s.fetches.join(ctx, a)
	if err != nil {
		return fmt.Errorf("fetch blob %s: %w", ref, err)
	}
	if f == nil {
		return nil
	}
	defer s.fetches.leave(ref, f)
	select {
	case <-f.done:
		if f.err != nil {
			return fmt.Errorf("fetch blob %s: %w", ref, f.err)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("fetch blob %s: %w", ref, context.Cause(ctx))
	}
}

// join joins the fetch of a file, or begins it. It returns none if the file is here by now.
func (g *fetches) join(ctx context.Context, a Away) (*fetch, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, ErrClosed
	}
	f := g.flying[a.Ref]
	if f == nil && g.intact(a.Ref) {
		return nil, nil //nolint:nilnil // nothing to wait for
	}
	if f == nil {
		ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		f = &fetch{cancel: cancel, again: g.isDamaged(a.Ref), done: make(chan struct{})}
		g.flying[a.Ref] = f
		g.tasks.Go(func() { g.run(ctx, f, a) })
	}
	f.callers++
	return f, nil
}

func (g *fetches) leave(ref Ref, f *fetch) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if f.callers--; f.callers == 0 {
		g.end(ref, f)
	}
}

// end cancels a fetch. The next caller begins another one.
func (g *fetches) end(ref Ref, f *fetch) {
	f.cancel()
	if g.flying[ref] == f {
		delete(g.flying, ref)
	}
}

// remove ends the fetch of a file that is no longer listed. Once it returns, none brings the file back.
func (g *fetches) remove(ref Ref) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.damaged.Delete(ref)
	if f := g.flying[ref]; f != nil {
		g.end(ref, f)
	}
}

// close ends all fetches, for good, and waits for them.
func (g *fetches) close() {
	g.mu.Lock()
	g.closed = true
	for ref, f := range g.flying {
		g.end(ref, f)
	}
	g.mu.Unlock()
	g.tasks.Wait()
}

func (g *fetches) run(ctx context.Context, f *fetch, a Away) {
	defer close(f.done)
	select {
	case g.slots <- struct{}{}:
		f.err = g.fetch(ctx, a, f.again)
		<-g.slots
	case <-ctx.Done():
		f.err = ctx.Err()
	}
	if f.err != nil && ctx.Err() == nil && !errors.Is(f.err, errNotKept) {
		g.damaged.Delete(a.Ref)
	}
	if f.err != nil && !errors.Is(f.err, ErrClosed) {
		f.err = fmt.Errorf("%w: %w", ErrAway, f.err)
	}
}

// open opens a part of the content of a file that is away.
func (g *fetches) open(ctx context.Context, a Away, from, n int64) (io.ReadCloser, error) {
	if g.from == nil {
		return nil, errors.New("nothing is known of where it is")
	}
	return g.from(ctx, a, from, n)
}

// fetch writes the file as any other and gives it the name that it has.
func (g *fetches) fetch(ctx context.Context, a Away, again bool) error {
	if err := g.room(a.Size); err != nil {
		return fmt.Errorf("%w: %w", errNotKept, err)
	}
	g.store.local.Add(fileSize(a.Size))
	defer g.store.local.Add(-fileSize(a.Size))
	body, err := g.open(ctx, a, 0, a.Size)
	if err != nil {
		return err
	}
	defer body.Close()
	w, err := g.store.Create(ctx)
	if err != nil { // the store is read-only, for example
		return fmt.Errorf("%w: %w", errNotKept, err)
	}
	defer w.Abort()
	n, err := w.ReadFrom(io.LimitReader(body, a.Size+1))
	if w.err != nil && ctx.Err() == nil { // of writing
		return fmt.Errorf("%w: %w", errNotKept, err)
	}
	if err == nil && n != a.Size {
		err = fmt.Errorf("it has not the %d bytes it had: %w", a.Size, ErrDamaged)
	}
	if err != nil {
		return err
	}
	err = g.finish(w, a.Ref, again)
	if err != nil && !errors.Is(err, ErrNotFound) {
		err = fmt.Errorf("%w: %w", errNotKept, err)
	}
	return err
}

// finish makes what was written durable and gives it the name that it has. again says that the file was damaged here when that
// began.
func (g *fetches) finish(w *Writer, ref Ref, again bool) error {
	if err := w.spill(); err != nil {
		return w.abandon(err)
	}
	if err := g.store.enter(w.ctx); err != nil {
		return w.abandon(err)
	}
	defer g.store.life.RUnlock()
	if err := w.syncBytes(); err != nil {
		return w.abandon(err)
	}
	return g.publish(w, ref, again)
}

// publish durably gives a synced file its name, unless the blob was removed meanwhile.
func (g *fetches) publish(w *Writer, ref Ref, again bool) error {
	path, err := ref.path(g.store.blobs)
	if err != nil {
		return w.abandon(err)
	}
	dir := filepath.Dir(path)
	if err := g.store.fs.Mkdir(dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return w.abandon(fmt.Errorf("make blob directory: %w", err))
	}
	if err := g.store.syncDir(g.store.blobs); err != nil {
		return w.abandon(err)
	}
	g.mu.Lock()
	if !again && g.intact(ref) { // another reader was faster; of a damaged file, one may just have given up reading elsewhere
		g.mu.Unlock()
		return w.abandon(nil)
	}
	old, oldErr := os.Lstat(path)
	if _, err = g.store.away.find(ref); err == nil { // a removal unlists the file first
		err = g.store.fs.Rename(w.temp, path)
	}
	if err == nil {
		g.store.local.Add(fileSize(w.size))
		g.damaged.Delete(ref)
	}
	switch {
	case err == nil && oldErr == nil: // it was damaged
		g.store.local.Add(-old.Size())
	case err == nil:
		g.store.absent.add(-1, -w.size)
	}
	g.mu.Unlock()
	if err != nil {
		return w.abandon(fmt.Errorf("publish blob: %w", err))
	}
	w.end()
	return g.store.syncDir(dir)
}
