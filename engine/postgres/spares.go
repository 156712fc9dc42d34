package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"
)

// spareNice is the niceness at which spares are made: they may not slow the
// databases that serve somebody.
const spareNice = 10

// ErrSparesClosed says that the pool is closed.
var ErrSparesClosed = errors.New("the pool of spares is closed")

// SparesOptions say what spares to keep.
type SparesOptions struct {
	Dir       string // where they lie, on the file system of the instances
	Want      int    // how many to keep ready
	Bin       Binaries
	SocketDir string // a private directory for the sockets while one is made; "" = SocketDir(Dir)
	// Room, when set, is asked before a spare is made ahead of need. False
	// makes the pool wait: the last of a disk is for the databases.
	Room func() bool
	Log  *slog.Logger // nil = nowhere
}

// Spares is a pool of data directories that are ready to become instances.
// Each is the result of an initdb of its own, with a system identifier of its
// own. Its one goroutine keeps the pool filled.
type Spares struct {
	opts   SparesOptions
	ctx    context.Context
	cancel context.CancelFunc
	filler sync.WaitGroup
	takers sync.WaitGroup // builds that Take does itself
	places chan struct{}  // taken by those builds: more than there are processors only slow each other
	wake   chan struct{}

	mu     sync.Mutex
	ready  []string // directories
	making *making  // what the filler is at, nil when it is idle
	closed bool
}

// making is a spare in the making. At most one Take claims it.
type making struct {
	claimed bool
	done    chan struct{}
	path    string // after done
	err     error  // after done
}

// NewSpares returns a pool over opts.Dir, which is made if need be. Spares of
// an earlier run are taken over; unfinished ones, and those of another version,
// are removed.
func NewSpares(opts SparesOptions) (*Spares, error) {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Room == nil {
		opts.Room = func() bool { return true }
	}
	if err := os.MkdirAll(opts.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make directory of spares: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Spares{
		opts: opts, ctx: ctx, cancel: cancel,
		places: make(chan struct{}, runtime.NumCPU()), wake: make(chan struct{}, 1),
	}
	if err := s.takeStock(); err != nil {
		cancel()
		return nil, fmt.Errorf("take stock of spares: %w", err)
	}
	return s, nil
}

// Start begins to fill the pool in the background. It may be called once.
func (s *Spares) Start() {
	s.filler.Go(s.fill)
}

// Ready returns how many spares are ready.
func (s *Spares) Ready() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ready)
}

// Take moves a spare to dest, durably: a ready one, else the one in the
// making, else one made now. dest must not exist; its parent must, on the
// pool's file system.
func (s *Spares) Take(ctx context.Context, dest string) error {
	for {
		path, err := s.obtain(ctx)
		if err != nil {
			return fmt.Errorf("take spare: %w", err)
		}
		err = moveDir(path, dest)
		if err == nil {
			s.nudge()
			return nil
		}
		if _, gone := os.Lstat(path); !errors.Is(gone, os.ErrNotExist) {
			s.putBack(path)
			return fmt.Errorf("take spare: %w", err)
		}
		// Somebody removed it under us: another will do.
	}
}

// Close ends the filling, waits for it and for every Take that builds, and
// leaves nothing half made or running. Ready spares stay for the next run.
// Closing twice is fine.
func (s *Spares) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	s.filler.Wait()
	s.takers.Wait()
}

// obtain gives the caller a spare that is nobody else's.
func (s *Spares) obtain(ctx context.Context) (string, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return "", ErrSparesClosed
	}
	if path, ok := s.popReady(); ok {
		s.mu.Unlock()
		return path, nil
	}
	m := s.making
	if m == nil || m.claimed {
		s.takers.Add(1)
		s.mu.Unlock()
		defer s.takers.Done()
		return s.buildFor(ctx)
	}
	m.claimed = true
	s.mu.Unlock()
	return s.await(ctx, m)
}

// await waits for a claimed spare. A claimer that gives up leaves it to the
// pool.
func (s *Spares) await(ctx context.Context, m *making) (string, error) {
	select {
	case <-m.done:
		return m.path, m.err
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-m.done: // it came at the same moment
		if m.err == nil {
			s.ready = append(s.ready, m.path)
		}
	default:
		m.claimed = false
	}
	return "", ctx.Err()
}

// buildFor builds one for a caller, at full speed. Whoever waits for a place
// gets a spare that comes free meanwhile.
func (s *Spares) buildFor(ctx context.Context) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	select {
	case s.places <- struct{}{}:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	defer func() { <-s.places }()
	s.mu.Lock()
	path, ok := s.popReady()
	s.mu.Unlock()
	if ok {
		return path, nil
	}
	return s.build(ctx, 0)
}

// popReady takes a ready spare when there is one. The caller holds mu.
func (s *Spares) popReady() (string, bool) {
	if len(s.ready) == 0 {
		return "", false
	}
	path := s.ready[0]
	s.ready = s.ready[1:]
	return path, true
}

func (s *Spares) putBack(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready = append(s.ready, path)
}

// nudge wakes the filler.
func (s *Spares) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// fill keeps the pool at Want until the pool closes.
func (s *Spares) fill() {
	for s.ctx.Err() == nil {
		if s.Ready() >= s.opts.Want {
			select {
			case <-s.wake:
			case <-s.ctx.Done():
			}
			continue
		}
		if !s.opts.Room() {
			_ = pause(s.ctx, fillRetry)
			continue
		}
		if err := s.fillOne(); err != nil && s.ctx.Err() == nil {
			s.opts.Log.Error("make spare data directory", "error", err)
			_ = pause(s.ctx, fillRetry)
		}
	}
}

// fillRetry is the pause after a spare that could not be made, or for which
// there was no room.
const fillRetry = 5 * time.Second

func (s *Spares) fillOne() error {
	m := &making{done: make(chan struct{})}
	s.mu.Lock()
	s.making = m
	s.mu.Unlock()
	m.path, m.err = s.build(s.ctx, spareNice)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.making = nil
	if m.err == nil && !m.claimed {
		s.ready = append(s.ready, m.path)
	}
	close(m.done)
	return m.err
}

// takeStock finds the spares of an earlier run.
func (s *Spares) takeStock() error {
	entries, err := os.ReadDir(s.opts.Dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		path := filepath.Join(s.opts.Dir, entry.Name())
		switch {
		case !strings.HasPrefix(entry.Name(), sparePrefix):
		case strings.HasPrefix(entry.Name(), s.prefix()) && !strings.HasSuffix(entry.Name(), buildingSuffix):
			s.ready = append(s.ready, path)
		default:
			if err := discard(path); err != nil {
				return err
			}
		}
	}
	return nil
}
