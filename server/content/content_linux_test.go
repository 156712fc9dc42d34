package content

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// lostSector is content that was verified and that the disk does not give back any more.
type lostSector struct {
	*io.SectionReader
	file *os.File
}

func (lostSector) Next(int64) ([]byte, error) { return nil, syscall.EIO }

func (l lostSector) Verified(n int64) (*os.File, int64) { return l.file, n }

// TestUnreadableSinceVerified: content that cannot be read any more since it was verified is no answer that is cut off, if nothing of
// it was sent.
func TestUnreadableSinceVerified(t *testing.T) {
	t.Parallel()
	file, err := os.Open("/proc/self/mem") // nothing is at its first address
	if err != nil {
		t.Skip(err)
	}
	defer file.Close()
	if _, err := file.ReadAt(make([]byte, 1), 0); !errors.Is(err, syscall.EIO) {
		t.Skip(err)
	}
	w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	w.Header().Set("Content-Type", "text/plain")
	content := lostSector{io.NewSectionReader(strings.NewReader(""), 0, 100), file}
	if err := Send(w, r, time.Time{}, content); !errors.Is(err, syscall.EIO) || errors.Is(err, ErrCutOff) {
		t.Errorf("sent: %v", err)
	}
}
