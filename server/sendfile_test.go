package server

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"holdfast/internal/testenv"
)

// fileListener counts the bytes that its connections are given as parts of files.
type fileListener struct {
	net.Listener
	fromFiles atomic.Int64
}

func (l *fileListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &fileConn{guardedConn: conn.(*guardedConn), listener: l}, nil
}

type fileConn struct {
	*guardedConn
	listener *fileListener
}

func (c *fileConn) ReadFrom(src io.Reader) (int64, error) {
	n, err := c.guardedConn.ReadFrom(src)
	if part, ok := src.(*io.LimitedReader); ok {
		if _, ok := part.R.(*os.File); ok {
			c.listener.fromFiles.Add(n)
		}
	}
	return n, err
}

// TestSendFile: a large object that was verified not long ago is sent by the kernel, with the right bytes, and one that was
// damaged since is not.
func TestSendFile(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("when a file was changed is known on Linux only")
	}
	s := startSite(t, "")
	bucket := s.bucket(t, "files", true)
	const size = 3<<20 + 1000
	content := strings.Repeat("0123456789abcdef", size/16+1)[:size]
	s.put(t, bucket, "large", "application/octet-stream", content)
	l := &fileListener{Listener: listenGuarded(t, 10, writePatience)}
	direct := httptest.NewUnstartedServer(s.Config.Handler)
	direct.Listener.Close()
	direct.Listener = l
	direct.Start()
	t.Cleanup(direct.Close)
	s.URL = direct.URL
	get := func(want string, least int64, header ...string) {
		t.Helper()
		l.fromFiles.Store(0)
		answer, body := s.ask(t, http.MethodGet, "/objects/"+bucket+"/large", header...)
		if answer.StatusCode >= 300 || body != want {
			t.Errorf("%s with %d bytes, not %d", answer.Status, len(body), len(want))
		}
		if n := l.fromFiles.Load(); least == 0 && n > 0 {
			t.Errorf("%d bytes came from the file", n)
		}
		testenv.Eventually(t, "the bytes come from the file", func() bool { return l.fromFiles.Load() >= least }) // the client may be faster than the count
	}
	get(content, 0)
	get(content, size-1024) // net/http copies the first bytes
	get(content[1_000_000:2_500_001], 1_499_000, "Range", "bytes=1000000-2500000")
	get(content[size-100:], 0, "Range", "bytes=-100")
	damage(t, s.dataDir, []byte(content))
	l.fromFiles.Store(0)
	if _, body := s.ask(t, http.MethodGet, "/objects/"+bucket+"/large"); len(body) >= size || l.fromFiles.Load() > 0 {
		t.Errorf("damaged: %d bytes, %d of them from the file", len(body), l.fromFiles.Load())
	}
}
