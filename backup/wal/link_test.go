package wal

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"holdfast/backup/wal/xlog"
	"holdfast/backup/wal/xlog/xlogtest"
	"holdfast/internal/durable"
)

// TestLink: a copy made while segments are added and compressed has each of them once, and all confirmed WAL.
func TestLink(t *testing.T) {
	t.Parallel()
	b := longWAL(12, nil)
	base := t.TempDir()
	a, w, err := openWriter(filepath.Join(base, "wal"), durable.OS{})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	var confirmed atomic.Uint64
	confirmed.Store(uint64(b.Start))
	appended := make(chan error, 1)
	go func() {
		err := appendAll(w, b, func(to xlog.LSN) { confirmed.Store(uint64(to)) })
		w.compressor.wait()
		appended <- err
	}()
	type link struct {
		dir string
		end xlog.LSN
	}
	var links []link
	for done := false; !done; {
		select {
		case err := <-appended:
			if err != nil {
				t.Error(err)
			}
			done = true
		default:
		}
		next := link{filepath.Join(base, fmt.Sprint("copy", len(links))), xlog.LSN(confirmed.Load())}
		if err := a.Link(next.dir); err != nil {
			t.Fatal(err)
		}
		links = append(links, next)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d copies", len(links))
	for n := 0; n < len(links); n += max(1, len(links)/50) {
		expectCopy(t, links[n].dir, b, links[n].end)
	}
}

// expectCopy opens a copy and checks that it has b's WAL up to end.
func expectCopy(t *testing.T, dir string, b *xlogtest.Builder, end xlog.LSN) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "1", "*"+partialSuffix))
	if err != nil {
		t.Fatal(err)
	}
	for _, partial := range files {
		if _, err := os.Stat(partial[:len(partial)-len(partialSuffix)] + compressedSuffix); err == nil {
			t.Errorf("%s is there twice", partial)
		}
	}
	expectWAL(t, dir, b, end)
}
