package binaries_test

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/engine/postgres"
	"holdfast/engine/postgres/binaries"
	"holdfast/engine/postgres/postgrestest"
)

// jarPath is the path in a Maven repository of the release that is downloaded if
// any will do.
func jarPath() string {
	arch := runtime.GOARCH
	if arch == "arm64" {
		arch = "arm64v8"
	}
	if _, err := os.Stat("/etc/alpine-release"); err == nil {
		arch += "-alpine"
	}
	name := "embedded-postgres-binaries-" + runtime.GOOS + "-" + arch
	return fmt.Sprintf("/io/zonky/test/postgres/%s/18.3.0/%s-18.3.0.jar", name, name)
}

// realJar returns the archive of the real repository, kept between runs; nil if it
// is neither cached nor reachable.
func realJar(t *testing.T) []byte {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(cache, "holdfast-test", filepath.Base(jarPath()))
	if data, err := os.ReadFile(kept); err == nil {
		return data
	}
	client := http.Client{Timeout: 3 * time.Minute}
	answer, err := client.Get(binaries.DefaultMirror() + jarPath())
	if err != nil {
		t.Logf("the real repository cannot be reached: %v", err)
		return nil
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Logf("the real repository: %s, %v", answer.Status, err)
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(kept), 0o700); err == nil {
		if err := os.WriteFile(kept+".new", data, 0o600); err == nil {
			_ = os.Rename(kept+".new", kept)
		}
	}
	return data
}

// madeJar packs this machine's PostgreSQL as embedded-postgres's archives do: a
// .txz in a zip.
func madeJar(t *testing.T) []byte {
	t.Helper()
	bin := postgrestest.Binaries(t)
	var packed bytes.Buffer
	if err := binaries.Pack(&packed, bin); err != nil {
		t.Fatal(err)
	}
	s := offline()
	s.CacheDir, s.Bundle = t.TempDir(), bundle(packed.Bytes())
	unpacked, err := s.Find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	txz := filepath.Join(t.TempDir(), "postgres.txz")
	// The programs must be in bin, and find their share directory where they were
	// built to have it; links in bin to the installed programs do both.
	stage := t.TempDir()
	if err := os.Mkdir(filepath.Join(stage, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tool := range []string{"postgres", "initdb", "pg_ctl"} {
		if err := os.Symlink(unpacked.Tool(tool), filepath.Join(stage, "bin", tool)); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "tar", "-C", stage, "-cJf", txz, "bin")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("make a .txz, which needs tar and xz: %v, %s", err, out)
	}
	data, err := os.ReadFile(txz)
	if err != nil {
		t.Fatal(err)
	}
	var jar bytes.Buffer
	z := zip.NewWriter(&jar)
	w, err := z.Create("postgres-linux-x86_64.txz")
	if err == nil {
		_, err = w.Write(data)
	}
	if err = errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	return jar.Bytes()
}

// mirror serves the jar and its checksum as a Maven repository below /repo.
func mirror(t *testing.T, jar []byte) (url string, asked func() []string) {
	t.Helper()
	sum := sha256.Sum256(jar)
	var mu sync.Mutex
	var paths []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		paths = append(paths, r.URL.Path)
		mu.Unlock()
		switch r.URL.Path {
		case "/repo" + jarPath():
			_, _ = w.Write(jar)
		case "/repo" + jarPath() + ".sha256":
			_, _ = io.WriteString(w, hex.EncodeToString(sum[:]))
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL + "/repo", func() []string { mu.Lock(); defer mu.Unlock(); return paths }
}

func fetching(t *testing.T, mirror string) binaries.Search {
	t.Helper()
	s := offline()
	s.NoFetch, s.Mirror, s.CacheDir = false, mirror, filepath.Join(t.TempDir(), "cache")
	return s
}

func TestDownloadFromMirror(t *testing.T) {
	jar := madeOrRealJar(t)
	url, asked := mirror(t, jar)
	s := fetching(t, url+"/")
	var wg sync.WaitGroup
	for range 2 { // concurrently: one of them fetches
		wg.Go(func() {
			bin, err := s.Find(t.Context())
			if err != nil || bin.Origin != binaries.OriginDownloaded || bin.Dir != filepath.Join(s.CacheDir, "18.3", "bin") {
				t.Errorf("found %+v, %v", bin, err)
			}
		})
	}
	wg.Wait()
	if got := asked(); len(got) != 2 || got[0] != "/repo"+jarPath() {
		t.Errorf("asked the mirror for %q", got)
	}
	if got := cached(s); len(got) != 1 || got[0] != "18.3" {
		t.Errorf("the cache holds %q", got)
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "holdfast-trial-*")); len(left) > 0 {
		t.Errorf("left of the trial: %q", left)
	}
}

// A download runs: another major than the installed one, in a supervised instance
// from its own warm pool.
func TestDownloadedPostgreSQLRuns(t *testing.T) {
	jar := madeOrRealJar(t)
	url, _ := mirror(t, jar)
	bin, err := fetching(t, url).Find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pool, err := postgres.NewWarmPool(postgres.WarmPoolOptions{Dir: t.TempDir(), Bin: bin})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	dir := filepath.Join(t.TempDir(), "data")
	if err := pool.Take(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	s := supervisor(t)
	if err := s.Start(t.Context(), postgres.Spec{ID: "x", Bin: bin, Dir: dir, Config: postgres.Config{Port: 5432}}); err != nil {
		t.Fatal(err)
	}
	conn, err := s.Connect(t.Context(), "x", "postgres")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if err := postgres.Provision(t.Context(), conn, postgres.Tenant{Database: "shop", Owner: "shop", ReadOnly: "shop_readonly"}); err != nil {
		t.Error(err)
	}
	if err := s.Update(t.Context(), "x", postgres.HBA{}); err != nil {
		t.Error(err)
	}
}

func TestDownloadFailures(t *testing.T) {
	whole := madeOrRealJar(t)
	cases := map[string]struct {
		handler http.HandlerFunc
		says    string
	}{
		"not there": {http.NotFound, "404"},
		"cut short": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(whole)))
			_, _ = w.Write(whole[:len(whole)/2])
		}, "unexpected EOF"},
		"altered": {func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, ".sha256") {
				_, _ = io.WriteString(w, strings.Repeat("0", 64))
				return
			}
			_, _ = w.Write(whole)
		}, "checksum"},
		"not an archive": {func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, ".sha256") {
				http.NotFound(w, r)
				return
			}
			_, _ = io.WriteString(w, "<html>log in to the guest network</html>")
		}, "zip"},
	}
	for name, c := range cases {
		server := httptest.NewServer(c.handler)
		s := fetching(t, server.URL)
		_, err := s.Find(t.Context())
		server.Close()
		if !errors.Is(err, binaries.ErrNotFound) || !strings.Contains(fmt.Sprint(err), c.says) {
			t.Errorf("%s: %v", name, err)
		}
		if left := cached(s); len(left) > 0 {
			t.Errorf("%s: left %q", name, left)
		}
	}
}

func madeOrRealJar(t *testing.T) []byte {
	t.Helper()
	if jar := realJar(t); jar != nil {
		return jar
	}
	return madeJar(t)
}

// The context cancels a download from a repository that hangs.
func TestDownloadIsCancelled(t *testing.T) {
	hang := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		<-hang
	}))
	defer server.Close()
	defer close(hang)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err := fetching(t, server.URL).Find(ctx)
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 5*time.Second {
		t.Errorf("after %v: %v", time.Since(began), err)
	}
}

// A directory that a process left half unpacked is not used, and is removed.
func TestHalfDownloadIsClearedAway(t *testing.T) {
	url, _ := mirror(t, madeOrRealJar(t))
	s := fetching(t, url)
	half := filepath.Join(s.CacheDir, ".making-123", "unpacked", "bin")
	broken := filepath.Join(s.CacheDir, "18.3", "bin")
	for _, dir := range []string{half, broken} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if bin, err := s.Find(t.Context()); err != nil || bin.Dir != broken {
		t.Errorf("found %+v, %v", bin, err)
	}
	if _, err := os.Stat(half); err == nil {
		t.Error("the incomplete directory is still there")
	}
}

// The real repository, if reachable, through the product's own path; the user's
// cache keeps the download so that it happens once.
func TestDownloadForReal(t *testing.T) {
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	if realJar(t) == nil {
		url, _ := mirror(t, madeJar(t))
		if _, err := fetching(t, url).Find(t.Context()); err != nil {
			t.Errorf("from a local server: %v", err)
		}
		return
	}
	s := offline()
	s.NoFetch, s.CacheDir = false, filepath.Join(cache, "holdfast-test", "real")
	if bin, err := s.Find(t.Context()); err != nil || bin.Version != "18.3" {
		t.Errorf("found %+v, %v", bin, err)
	}
}
