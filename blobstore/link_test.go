package blobstore

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"sync"
	"testing"
)

// TestLink links a store again and again while it is written to: each copy has
// all that was acknowledged before, in whole segments, and stays as it is.
func TestLink(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s := openStore(t, dir, Options{SegmentSize: 20 << 10, Inline: 100})
	acknowledged, mu := map[Ref]string{}, sync.Mutex{}
	done := make(chan struct{})
	var wg sync.WaitGroup
	for writer := range 4 {
		wg.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-done:
					return
				default:
				}
				content := fmt.Sprintf("%*d %d", 1+n%200, writer, n)
				ref, err := publish(t, s, content)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				acknowledged[ref] = content
				mu.Unlock()
			}
		})
	}
	type copied struct {
		dir  string
		want map[Ref]string
	}
	var copies []copied
	for n := range 20 {
		mu.Lock()
		want := maps.Clone(acknowledged)
		mu.Unlock()
		c := copied{filepath.Join(t.TempDir(), "store"), want}
		if err := s.Link(c.dir); err != nil {
			t.Fatalf("copy %d: %v", n, err)
		}
		copies = append(copies, c)
	}
	close(done)
	wg.Wait()
	for n, c := range copies {
		for _, problem := range judge(filepath.Dir(c.dir), c.want) {
			t.Errorf("copy %d: %s", n, problem)
		}
	}
	if err := s.Link(copies[0].dir); err == nil {
		t.Error("it linked into a directory that is there")
	}
	s.Close()
	if err := s.Link(filepath.Join(t.TempDir(), "store")); !errors.Is(err, ErrClosed) {
		t.Errorf("a closed store: %v", err)
	}
}
