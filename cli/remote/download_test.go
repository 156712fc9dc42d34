package remote

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"holdfast/cli/client"
	"holdfast/server/api/wire"
)

// breaking serves content and breaks every connection after a number of bytes.
type breaking struct {
	content []byte
	etag    string
	after   int // bytes; 0 breaks at once
	asked   atomic.Int32
}

// ServeHTTP implements http.Handler.
func (b *breaking) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.asked.Add(1)
	w.Header().Set("ETag", b.etag)
	http.ServeContent(&cutting{ResponseWriter: w, left: b.after}, r, "", time.Time{}, bytes.NewReader(b.content))
}

// cutting ends the connection after a number of bytes.
type cutting struct {
	http.ResponseWriter
	left int
}

// Write implements io.Writer.
func (c *cutting) Write(p []byte) (int, error) {
	if len(p) <= c.left {
		c.left -= len(p)
		return c.ResponseWriter.Write(p)
	}
	_, _ = c.ResponseWriter.Write(p[:c.left])
	_ = http.NewResponseController(c.ResponseWriter).Flush()
	panic(http.ErrAbortHandler)
}

func (b *breaking) source(url string) downloadSource {
	sum := client.NewCRC32C()
	_, _ = sum.Write(b.content)
	return downloadSource{
		name: "big", id: "big", etag: b.etag, size: int64(len(b.content)),
		sum: func() checksum { return client.NewCRC32C() }, want: sum.Text(),
		url: func() (string, error) { return url, nil },
	}
}

func newTask(t *testing.T) (*task, *bytes.Buffer) {
	t.Helper()
	c, err := client.New(client.Config{URL: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	cmd, said := &cobra.Command{}, &bytes.Buffer{}
	cmd.SetErr(said)
	return &task{session: &session{}, cmd: cmd, ctx: t.Context(), api: c}, said
}

func random(n int) []byte {
	seed := [32]byte{1}
	content := make([]byte, n)
	_, _ = rand.NewChaCha8(seed).Read(content)
	return content
}

// openDir returns a directory to download into, and its root.
func openDir(t *testing.T) (dir string, root *os.Root) {
	t.Helper()
	dir = t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return dir, root
}

// TestDownloadGoesOn downloads a file from a server that breaks every
// connection.
func TestDownloadGoesOn(t *testing.T) {
	t.Parallel()
	b := &breaking{content: random(300_000), etag: `"v1"`, after: 120_000}
	server := httptest.NewServer(b)
	defer server.Close()
	task, _ := newTask(t)
	dir, root := openDir(t)
	if err := task.save(root, "big", b.source(server.URL), task.meter("")); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "big"))
	if err != nil || !bytes.Equal(got, b.content) || b.asked.Load() != 3 {
		t.Errorf("%d bytes after %d requests, %v", len(got), b.asked.Load(), err)
	}
}

// TestDownloadEnds checks that a download that cannot continue fails and leaves
// nothing.
func TestDownloadEnds(t *testing.T) {
	t.Parallel()
	gone := &client.Error{Status: http.StatusNotFound, Code: wire.CodeNotFound}
	for name, c := range map[string]struct {
		change func(*breaking, *downloadSource)
		is     error
	}{
		"changed meanwhile": {func(_ *breaking, src *downloadSource) { src.etag = `"v0"` }, client.ErrChanged},
		"deleted meanwhile": {func(_ *breaking, src *downloadSource) {
			src.url = func() (string, error) { return "", gone }
		}, gone},
		"damaged on the way": {func(b *breaking, src *downloadSource) {
			b.content = random(len(b.content) + 1)[1:]
		}, client.ErrDamaged},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &breaking{content: random(1000), etag: `"v1"`, after: 1 << 20}
			server := httptest.NewServer(b)
			defer server.Close()
			src := b.source(server.URL)
			c.change(b, &src)
			task, _ := newTask(t)
			dir, root := openDir(t)
			if err := task.save(root, "big", src, task.meter("")); !errors.Is(err, c.is) {
				t.Errorf("got %v", err)
			}
			left, err := filepath.Glob(filepath.Join(dir, ".holdfast-*.part"))
			if _, statErr := os.Stat(filepath.Join(dir, "big")); err != nil || statErr == nil || len(left) > 0 {
				t.Errorf("left behind: %v, big: %v", left, statErr)
			}
		})
	}
}

// TestDownloadTwice checks that two downloads of one file into a directory do
// not share bytes.
func TestDownloadTwice(t *testing.T) {
	t.Parallel()
	b := &breaking{content: random(1000), etag: `"v1"`, after: 1 << 20}
	server := httptest.NewServer(b)
	defer server.Close()
	task, _ := newTask(t)
	dir, root := openDir(t)
	second := b.source(server.URL)
	first := second
	first.url = func() (string, error) { // during the download
		if err := task.save(root, "big", second, task.meter("")); ExitCode(err) != exitConflict {
			t.Errorf("the second: %v", err)
		}
		return server.URL, nil
	}
	if err := task.save(root, "big", first, task.meter("")); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "big")); err != nil || !bytes.Equal(got, b.content) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if err := task.save(root, "big", second, task.meter("")); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// TestDownloadIsRefused checks that the error omits the signature, with which
// anyone could download, and says whether a retry may help.
func TestDownloadIsRefused(t *testing.T) {
	t.Parallel()
	for status, says := range map[int]string{
		http.StatusNotFound:            "it is gone, or the link has expired",
		http.StatusInternalServerError: "the download failed: http://HOST/big answers 500 Internal Server Error",
		http.StatusBadGateway:          "a proxy does not reach the appliance: http://HOST/big answers 502 Bad Gateway",
	} {
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", status) }))
			defer server.Close()
			task, _ := newTask(t)
			src := (&breaking{content: random(10)}).source(server.URL + "/big?signature=secret")
			_, err := task.fetchOnce(src, 0, io.Discard, task.meter(""))
			said := strings.ReplaceAll(explain(err, server.URL).Error(), strings.TrimPrefix(server.URL, "http://"), "HOST")
			if !strings.Contains(said, says) || strings.Contains(said, "signature") || strings.Contains(said, "--url") {
				t.Errorf("said %s", said)
			}
			if mayGoOn(err) != (status == http.StatusBadGateway) {
				t.Errorf("may go on: %v", mayGoOn(err))
			}
		})
	}
}

// TestDownloadResumes checks that a partial download is not fetched again,
// unless it is of another version.
func TestDownloadResumes(t *testing.T) {
	t.Parallel()
	b := &breaking{content: random(1000), etag: `"v1"`, after: 1 << 20}
	var ranges []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ranges = append(ranges, r.Header.Get("Range"))
		b.ServeHTTP(w, r)
	}))
	defer server.Close()
	src := b.source(server.URL)
	task, said := newTask(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, src.partial("big")), b.content[:600], 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := task.save(root, "big", src, task.meter("")); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(ranges) != "[bytes=600-]" || !strings.Contains(said.String(), "going on with big after 600 B") {
		t.Errorf("asked for %q, said %q", ranges, said)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "big")); err != nil || !bytes.Equal(got, b.content) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}
