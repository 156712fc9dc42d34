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
	"sync/atomic"
	"time"

	"holdfast/engine/postgres/binaries"
	"holdfast/internal/durable"
)

// buildNice is the niceness at which the pool builds data directories, so that
// databases in use are not slowed.
const buildNice = 10

// ErrWarmPoolClosed says that the pool is closed.
var ErrWarmPoolClosed = errors.New("the warm pool is closed")

// WarmPoolOptions configure a pool.
type WarmPoolOptions struct {
	Dir       string // of the prepared directories, on the file system of the instances
	Want      int    // how many to keep ready
	Bin       binaries.Set
	SocketDir string // a private directory for the sockets during a build; "" = SocketDir(Dir)
	// HasSpace, when set, is called before a directory is built ahead of need. If it
	// returns false, the pool waits: databases need the rest of the disk.
	HasSpace func() bool
	// Await, when set, is called before a directory is built ahead of need, and
	// returns when nothing more urgent runs, or an error if ctx has ended.
	Await func(ctx context.Context) error
	Log   *slog.Logger // nil = discard
}

// WarmPool holds prepared data directories, ready to become instances. Each is a
// copy of a template, with a system identifier of its own. The template is made by
// one initdb and stays for the next run. One goroutine keeps the pool filled.
type WarmPool struct {
	opts   WarmPoolOptions
	ctx    context.Context
	cancel context.CancelFunc
	filler sync.WaitGroup
	takers sync.WaitGroup // builds that Take does itself
	slots  chan struct{}  // a semaphore for those builds: more than one per processor slows all
	wake   chan struct{}
	// templating holds a token while the template is built or looked for.
	templating chan struct{}
	// known is the template, once it has been read.
	known atomic.Pointer[template]

	mu     sync.Mutex
	ready  []string // directories
	closed bool
}

// NewWarmPool returns a pool over opts.Dir, which it creates if necessary. It
// adopts the template and the prepared directories of an earlier run and removes
// unfinished ones and those of another version.
func NewWarmPool(opts WarmPoolOptions) (*WarmPool, error) {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.HasSpace == nil {
		opts.HasSpace = func() bool { return true }
	}
	if opts.Await == nil {
		opts.Await = func(context.Context) error { return nil }
	}
	if err := os.MkdirAll(opts.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make directory of the warm pool: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &WarmPool{
		opts: opts, ctx: ctx, cancel: cancel,
		slots: make(chan struct{}, runtime.NumCPU()), wake: make(chan struct{}, 1),
		templating: make(chan struct{}, 1),
	}
	if err := s.adopt(); err != nil {
		cancel()
		return nil, fmt.Errorf("adopt prepared data directories: %w", err)
	}
	return s, nil
}

// Start begins to fill the pool in the background. It may be called once.
func (s *WarmPool) Start() {
	s.filler.Go(s.fill)
}

// Ready returns how many directories are ready.
func (s *WarmPool) Ready() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ready)
}

// Take moves a prepared directory to dest, durably: a ready one, or else one
// built now. dest must not exist; its parent must, on the pool's file system.
func (s *WarmPool) Take(ctx context.Context, dest string) error {
	for {
		path, err := s.obtain(ctx)
		if err != nil {
			return fmt.Errorf("take prepared data directory: %w", err)
		}
		err = durable.MoveDir(path, dest)
		if err == nil {
			s.wakeFiller()
			return nil
		}
		if _, gone := os.Lstat(path); !errors.Is(gone, os.ErrNotExist) {
			s.put(path)
			return fmt.Errorf("take prepared data directory: %w", err)
		}
		// It was removed from outside: take another.
	}
}

// Close stops the filling, waits for it and for every Take that builds, and
// leaves nothing unfinished or running. Ready directories stay for the next run.
// Calling Close twice is fine.
func (s *WarmPool) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	s.filler.Wait()
	s.takers.Wait()
}

// obtain returns a directory for the caller's exclusive use.
func (s *WarmPool) obtain(ctx context.Context) (string, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return "", ErrWarmPoolClosed
	}
	if path, ok := s.popReady(); ok {
		s.mu.Unlock()
		return path, nil
	}
	s.takers.Add(1)
	s.mu.Unlock()
	defer s.takers.Done()
	return s.buildFor(ctx)
}

// buildFor builds a directory for a caller, at full speed. A caller that waited
// for a slot gets a directory that became ready in the meantime.
func (s *WarmPool) buildFor(ctx context.Context) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	defer func() { <-s.slots }()
	s.mu.Lock()
	path, ok := s.popReady()
	s.mu.Unlock()
	if ok {
		return path, nil
	}
	return s.buildOne(ctx, 0)
}

// popReady takes a ready directory if there is one. The caller holds mu.
func (s *WarmPool) popReady() (string, bool) {
	if len(s.ready) == 0 {
		return "", false
	}
	path := s.ready[0]
	s.ready = s.ready[1:]
	return path, true
}

func (s *WarmPool) put(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready = append(s.ready, path)
}

// wakeFiller wakes the filler.
func (s *WarmPool) wakeFiller() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// fill keeps the pool at Want until the pool closes.
func (s *WarmPool) fill() {
	for s.ctx.Err() == nil {
		if s.Ready() >= s.opts.Want {
			select {
			case <-s.wake:
			case <-s.ctx.Done():
			}
			continue
		}
		if !s.opts.HasSpace() {
			_ = sleep(s.ctx, fillRetry)
			continue
		}
		if s.opts.Await(s.ctx) != nil {
			return
		}
		path, err := s.buildOne(s.ctx, buildNice)
		if err == nil {
			s.put(path)
		} else if s.ctx.Err() == nil {
			s.opts.Log.Error("build data directory for the warm pool", "error", err)
			_ = sleep(s.ctx, fillRetry)
		}
	}
}

// fillRetry is the pause after a build that failed, or for lack of free space.
const fillRetry = 5 * time.Second

// adopt finds the directories of an earlier run.
func (s *WarmPool) adopt() error {
	entries, err := os.ReadDir(s.opts.Dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		path := filepath.Join(s.opts.Dir, entry.Name())
		switch {
		case path == s.template():
		case !strings.HasPrefix(entry.Name(), preparedPrefix) && !strings.HasPrefix(entry.Name(), templatePrefix):
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
