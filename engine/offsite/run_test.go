package offsite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/offsite/stream"
)

// partOfTest counts its starts and stops.
type partOfTest struct {
	err              error
	started, stopped int
}

func (p *partOfTest) start(*stream.Writer, *known) error {
	if p.err == nil {
		p.started++
	}
	return p.err
}

func (p *partOfTest) entries(context.Context) ([]stream.Entry, error) { return nil, nil }

func (p *partOfTest) stop() { p.stopped++ }

// TestPartThatDoesNotStart: only the parts before it are stopped, once.
func TestPartThatDoesNotStart(t *testing.T) {
	t.Parallel()
	r := directoryRepository(t)
	w, err := stream.NewWriter(t.Context(), claimEpoch(t, r), stream.Options{})
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	first, second, third := &partOfTest{}, &partOfTest{err: broken}, &partOfTest{}
	s := &Service{parts: []part{first, second, third}}
	if err := s.write(t.Context(), &run{writer: w}); !errors.Is(err, broken) {
		t.Error(err)
	}
	for i, p := range []*partOfTest{first, second, third} {
		if p.stopped != p.started {
			t.Errorf("part %d was started %d times and stopped %d times", i, p.started, p.stopped)
		}
	}
}

// unread is a part whose checkpoints fail because the log cannot be read back. It counts them.
type unread struct {
	partOfTest
	tried atomic.Int32
}

func (p *unread) entries(context.Context) ([]stream.Entry, error) {
	p.tried.Add(1)
	return nil, fmt.Errorf("%w: %w", errLogUnread, syscall.ENOSPC)
}

// TestLogThatCannotBeReadBack: the next attempt, which reads the log again, comes after checkpointEvery, even if a checkpoint is wanted
// meanwhile, but soon when the log lacks something.
func TestLogThatCannotBeReadBack(t *testing.T) {
	r := directoryRepository(t)
	h := claimEpoch(t, r)
	synctest.Test(t, func(t *testing.T) {
		w, err := stream.NewWriter(t.Context(), h, stream.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = w.Close(t.Context()) }()
		p := &unread{}
		s := &Service{
			core: &core.Core{Log: slog.New(slog.DiscardHandler), Clock: time.Now}, parts: []part{p}, soon: make(chan struct{}, 1),
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = s.keepPoints(ctx, &run{writer: w}) }()
		for _, step := range []struct {
			ask   func()
			after time.Duration
			want  int32
		}{
			{s.wakePoints, checkpointEvery - time.Second, 1},
			{s.wakePoints, 2 * pollInterval, 2},
			{s.CheckpointSoon, checkpointGap + 2*pollInterval, 3},
			{s.wakePoints, checkpointEvery - checkpointGap, 3},
		} {
			step.ask()
			time.Sleep(step.after)
			synctest.Wait()
			if tried := p.tried.Load(); tried != step.want {
				t.Errorf("%v later, it was tried %d times, not %d", step.after, tried, step.want)
			}
		}
	})
}
