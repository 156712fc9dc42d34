package objects

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestDropLost: an object whose bytes are nowhere is dropped, if it is new; all others stay.
func TestDropLost(t *testing.T) {
	s := openStore(t)
	bucket, large := s.bucket(t, "photos"), strings.Repeat("large ", 20_000)
	for key, content := range map[string]string{"small": "small", "kept": large, "away": large, "lost": large} {
		s.mustPut(t, bucket, key, content)
	}
	away, err := s.object(bucket, "away")
	if err != nil {
		t.Fatal(err)
	}
	sendAway(t, s, away)
	s.open(t)
	lost, err := s.object(bucket, "lost")
	if err != nil {
		t.Fatal(err)
	}
	directory, id, _ := strings.Cut(lost.Blob, "-")
	if err := os.Remove(filepath.Join(blobDirectory(s.core), "blobs", directory, id)); err != nil {
		t.Fatal(err)
	}

	if n, err := s.DropLost(t.Context(), time.Now().Add(time.Hour)); n != 0 || err != nil {
		t.Errorf("of older objects %d were dropped, %v", n, err)
	}
	for _, want := range []int{1, 0} {
		if n, err := s.DropLost(t.Context(), time.Now().Add(-time.Hour)); n != want || err != nil {
			t.Errorf("%d were dropped, not %d, %v", n, want, err)
		}
	}
	for _, key := range []string{"small", "kept", "away"} {
		if _, err := s.object(bucket, key); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
	if _, err := s.object(bucket, "lost"); err == nil {
		t.Error("the object without bytes is there")
	}
}
