package stream

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"holdfast/internal/objectstore"
)

// garbling is a store whose objects arrive changed when they are read, each the first times.
type garbling struct {
	objectstore.Store
	mu    sync.Mutex
	times int
	reads map[string]int // by key
}

func (g *garbling) set(times int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.times, g.reads = times, map[string]int{}
}

func (g *garbling) Get(ctx context.Context, key string, r objectstore.Range) (*objectstore.Object, error) {
	o, err := g.Store.Get(ctx, key, r)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.reads[key]++; err == nil && g.reads[key] <= g.times {
		o.ReadCloser = &garbled{ReadCloser: o.ReadCloser, left: o.Length / 2}
	}
	return o, err
}

// garbled changes a byte in the middle.
type garbled struct {
	io.ReadCloser
	left int64 // before the byte
}

func (g *garbled) Read(p []byte) (int, error) {
	n, err := g.ReadCloser.Read(p)
	if g.left >= 0 && g.left < int64(n) {
		p[g.left] ^= 1
	}
	g.left -= int64(n)
	return n, err
}

// TestChangedOnTheWay reads everything of a repository through something that changes what it passes on now and then:
// what arrives damaged is read again, and damaged only if it is each time.
func TestChangedOnTheWay(t *testing.T) {
	store := &garbling{Store: directory(t), reads: map[string]int{}}
	s := &stored{Repository: repository(t, store, ring(t))}
	points, refs := twoPoints(t, s)
	long := make([]byte, PartSize+PartSize/2)
	_, _ = rand.NewChaCha8([32]byte{}).Read(long)
	w := open(t, claim(t, s.Repository, "two", true), Options{}, &script{owner: "a"})
	defer kill(w)
	file, err := w.Store(t.Context(), bytes.NewReader(long))
	if err != nil {
		t.Fatal(err)
	}
	read := func(ref Reference, offset, length int64) ([]byte, error) {
		body, err := s.Open(t.Context(), ref, offset, length)
		if err != nil {
			return nil, err
		}
		defer body.Close()
		return io.ReadAll(body)
	}
	store.set(2)
	h, c := find(t, s.Repository, time.Time{})
	if c.Point != points[1] || len(h.Ignored) > 0 {
		t.Errorf("%v is used, and ignored %v", c.Point, h.Ignored)
	}
	for _, err := range h.Frames(t.Context(), c, time.Time{}) {
		if err != nil {
			t.Error(err)
		}
	}
	for name, of := range map[string]struct{ offset, length int64 }{"whole": {0, -1}, "a range": {PartSize - 1000, 5000}} {
		store.set(2)
		end := of.offset + of.length
		if of.length < 0 {
			end = int64(len(long))
		}
		if got, err := read(file, of.offset, of.length); err != nil || !bytes.Equal(got, long[of.offset:end]) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
	store.set(1000)
	if _, err := read(refs[0], 0, -1); !Damaged(err) {
		t.Errorf("damaged each time: %v", err)
	}
	if store.reads[refs[0].partKey(0)] != 3 {
		t.Errorf("it was read %d times", store.reads[refs[0].partKey(0)])
	}
}
