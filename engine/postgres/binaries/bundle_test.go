package binaries_test

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/engine/postgres"
	"holdfast/engine/postgres/binaries"
	"holdfast/engine/postgres/postgrestest"

	"github.com/klauspost/compress/zstd"
)

func bundle(data []byte) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
}

func TestPackAndRun(t *testing.T) {
	var archive bytes.Buffer
	if err := binaries.Pack(&archive, postgrestest.Binaries(t)); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d MB", archive.Len()>>20)
	cache := t.TempDir()
	s := offline()
	s.CacheDir, s.Bundle = cache, bundle(archive.Bytes())
	bin, err := s.Find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if bin.Origin != binaries.OriginBundled || !strings.HasPrefix(bin.Dir, cache) {
		t.Errorf("found %+v", bin)
	}
	if env := strings.Join(bin.Env(), " "); !strings.Contains(env, "LD_LIBRARY_PATH="+cache) {
		t.Errorf("environment: %s", env)
	}
	dir := filepath.Join(t.TempDir(), "data")
	if err := postgres.Init(t.Context(), bin, dir); err != nil {
		t.Fatal(err)
	}
	sup := supervisor(t)
	spec := postgres.Spec{ID: "bundled", Bin: bin, Dir: dir, Config: postgres.Config{Port: 5432}}
	if err := sup.Start(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	conn, err := sup.Connect(t.Context(), "bundled", "postgres")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var zones, extensions int
	err = conn.QueryRow(t.Context(), "select (select count(*) from pg_timezone_abbrevs), (select count(*) from pg_available_extensions)").Scan(&zones, &extensions)
	if err != nil || zones == 0 || extensions == 0 {
		t.Errorf("%d abbreviations, %d extensions, %v: the share directory was not found", zones, extensions, err)
	}
	if licences, _ := filepath.Glob(filepath.Join(cache, "bundled-*", "holdfast-licences", "*")); len(licences) == 0 {
		t.Error("no licences")
	}
	// A second search uses the unpacked bundle.
	before, _ := os.Stat(bin.Tool("postgres"))
	again, err := s.Find(t.Context())
	if err != nil || again.Dir != bin.Dir {
		t.Fatalf("again: %+v, %v", again, err)
	}
	if after, err := os.Stat(again.Tool("postgres")); err != nil || !os.SameFile(before, after) {
		t.Errorf("unpacked again, %v", err)
	}
}

func TestBrokenBundleIsNotKept(t *testing.T) {
	var evil bytes.Buffer
	z, err := zstd.NewWriter(&evil)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(z)
	_ = w.WriteHeader(&tar.Header{Name: "../../escaped", Typeflag: tar.TypeReg, Mode: 0o644, Size: 1})
	_, _ = w.Write([]byte("x"))
	_ = w.Close()
	_ = z.Close()
	for name, data := range map[string][]byte{"empty": nil, "no archive": []byte("nonsense"), "leads out": evil.Bytes(), "cut": evil.Bytes()[:evil.Len()/2]} {
		s := offline()
		s.CacheDir, s.Bundle = filepath.Join(t.TempDir(), "a", "cache"), bundle(data)
		if bin, err := s.Find(t.Context()); err == nil {
			t.Errorf("%s: found %+v", name, bin)
		}
		if left := cached(s); len(left) > 0 {
			t.Errorf("%s: left %q", name, left)
		}
		if _, err := os.Stat(filepath.Join(filepath.Dir(s.CacheDir), "escaped")); err == nil {
			t.Errorf("%s: escaped", name)
		}
	}
}

// cached lists the files in a search's cache.
func cached(s binaries.Search) []string {
	entries, _ := os.ReadDir(s.CacheDir)
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}
