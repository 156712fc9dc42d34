package server

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"holdfast/engine/model"
	"holdfast/server/content"
)

// brokenOff is the response to a client that disconnects after that many bytes.
type brokenOff struct {
	header http.Header
	left   int
}

func (b *brokenOff) Header() http.Header { return b.header }
func (b *brokenOff) WriteHeader(int)     {}

func (b *brokenOff) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, errors.New("connection reset")
	}
	return len(p), nil
}

// watched is content that detects use by others than its owner.
type watched struct {
	content.Stored
	closed atomic.Bool
	late   atomic.Bool
}

func (w *watched) Read(p []byte) (int, error) {
	defer w.look()
	w.look()
	return w.Stored.Read(p)
}

func (w *watched) Next(n int64) ([]byte, error) {
	defer w.look()
	w.look()
	return w.Stored.Next(n)
}

func (w *watched) Seek(offset int64, whence int) (int64, error) {
	defer w.look()
	w.look()
	return w.Stored.Seek(offset, whence)
}

func (w *watched) look() {
	if w.closed.Load() {
		w.late.Store(true)
	}
}

// TestBrokenOffRanges requests several ranges and disconnects before they arrive: from then on nothing reads the
// content, and nothing is taken for damaged.
func TestBrokenOffRanges(t *testing.T) {
	t.Parallel()
	s := startSite(t, "")
	bucket := s.bucket(t, "ranges", true)
	for key, size := range map[string]int{"small": 60_000, "large": 8 << 20} {
		s.put(t, bucket, key, "application/octet-stream", strings.Repeat("0123456789abcdef", size/16))
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Range", "bytes=10-29999,30010-")
		for i := range 500 {
			object, err := s.engine.Objects.ObjectDownload(t.Context(), &model.Call{}, bucket, key, "")
			if err != nil {
				t.Fatal(err)
			}
			watched := &watched{Stored: object.Content}
			if err := content.Send(&brokenOff{http.Header{}, i * 37013 % size}, r, object.LastModified, watched); err != nil {
				t.Fatalf("%s is taken for damaged: %v", key, err)
			}
			watched.closed.Store(true)
			object.Content.Close()
			if watched.late.Load() {
				t.Fatalf("%s was read after the answer had ended", key)
			}
		}
	}
}
