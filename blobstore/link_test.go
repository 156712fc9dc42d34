package blobstore

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestLink links a store again and again while it is written to: each copy has everything acknowledged before, in
// complete segments, and does not change.
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
				giveUp(t, s)
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

// giveUp leaves nothing of a blob whose bytes and name were already durable.
func giveUp(t *testing.T, s *Store) {
	w, err := s.Create(t.Context())
	if err == nil {
		_, err = w.Write(make([]byte, 1000))
	}
	if err == nil {
		_, err = w.Secure()
	}
	if err == nil {
		err = w.Abort()
	}
	if err != nil {
		t.Error(err)
	}
}

// TestLinkedPart continues a part after it was linked, from before its end: a reader of the copy finds the same
// number of bytes.
func TestLinkedPart(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "store"), Options{})
	id, err := s.CreatePart(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	send := func(size int64, crc uint32, text string) (int64, uint32) {
		p, err := s.ResumePart(id, size, crc)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		if _, err := p.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if size, crc, err = p.Sync(); err != nil {
			t.Fatal(err)
		}
		return size, crc
	}
	size, crc := send(0, 0, "kept,")
	send(size, crc, "not kept")
	dir := filepath.Join(t.TempDir(), "store")
	if err := s.Link(dir); err != nil {
		t.Fatal(err)
	}
	send(size, crc, "anew")
	copied, err := os.ReadFile(filepath.Join(dir, "parts", id))
	if err != nil || len(copied) != len("kept,not kept") || !strings.HasPrefix(string(copied), "kept,") {
		t.Errorf("the copy has %q, %v", copied, err)
	}
}
