package binaries_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/engine/postgres/binaries"
	"holdfast/engine/postgres/postgrestest"
)

// pretend creates a directory of programs that report the given version and do
// nothing else.
func pretend(t *testing.T, version string, tools ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, tool := range tools {
		script := fmt.Sprintf("#!/bin/sh\necho '%s (PostgreSQL) %s (Debian)'\n", tool, version)
		if err := os.WriteFile(filepath.Join(dir, tool), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func server(t *testing.T, version string) string {
	t.Helper()
	return pretend(t, version, "postgres", "initdb", "pg_dump")
}

// offline returns a search with only the given directories.
func offline(dirs ...string) binaries.Search {
	return binaries.Search{
		NoFetch:   true,
		Installed: func() []string { return dirs },
		Bundle:    func() (io.ReadCloser, error) { return nil, binaries.ErrNoBundle },
	}
}

func TestFindTakesTheNewest(t *testing.T) {
	old, broken := server(t, "14.9"), pretend(t, "19.1", "postgres")
	s := offline(server(t, "15.2"), old, server(t, "17.10"), server(t, "17.9"), broken, server(t, "16.1"))
	bin, err := s.Find(t.Context())
	if err != nil || bin.Version != "17.10" || bin.Major != 17 || bin.Origin != binaries.OriginInstalled {
		t.Errorf("found %+v, %v", bin, err)
	}
	if bin, err = s.FindMajor(t.Context(), 16); err != nil || bin.Version != "16.1" {
		t.Errorf("16: %+v, %v", bin, err)
	}
	_, err = s.FindMajor(t.Context(), 99)
	if !errors.Is(err, binaries.ErrNotFound) {
		t.Errorf("99: %v", err)
	}
	for _, why := range []string{old, "14.9 is too old", broken, "initdb"} {
		if !strings.Contains(fmt.Sprint(err), why) {
			t.Errorf("the error does not say %q: %v", why, err)
		}
	}
	candidates := s.Candidates(t.Context())
	if len(candidates) != 6 || candidates[0].Version != "17.10" || candidates[5].Err == nil {
		t.Errorf("candidates: %v", candidates)
	}
}

func TestBetaIsOlderThanTheRelease(t *testing.T) {
	bin, err := offline(server(t, "18beta1"), server(t, "18.0")).Find(t.Context())
	if err != nil || bin.Version != "18.0" {
		t.Errorf("found %+v, %v", bin, err)
	}
}

func TestExplicitIsNeverPassedOver(t *testing.T) {
	s := offline(server(t, "17.1"))
	for name, dir := range map[string]string{
		"missing": filepath.Join(t.TempDir(), "nothing"), "empty": t.TempDir(),
		"old": server(t, "13.1"), "no initdb": pretend(t, "17.1", "postgres"), "talks nonsense": server(t, "seventeen"),
	} {
		s.Explicit = dir
		if bin, err := s.Find(t.Context()); err == nil || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %+v, %v", name, bin, err)
		}
	}
	s.Explicit = server(t, "16.3")
	if bin, err := s.Find(t.Context()); err != nil || bin.Version != "16.3" || bin.Origin != binaries.OriginFlag {
		t.Errorf("found %+v, %v", bin, err)
	}
	if bin, err := s.FindMajor(t.Context(), 17); err != nil || bin.Version != "17.1" {
		t.Errorf("another major: %+v, %v", bin, err)
	}
}

func TestNotExecutable(t *testing.T) {
	dir := server(t, "17.1")
	if err := os.Chmod(filepath.Join(dir, "initdb"), 0o644); err != nil {
		t.Fatal(err)
	}
	if bin, err := offline(dir).Find(t.Context()); !strings.Contains(fmt.Sprint(err), "permission denied") {
		t.Errorf("found %+v, %v", bin, err)
	}
}

func TestClientTool(t *testing.T) {
	near := binaries.Set{Dir: server(t, "16.1"), Major: 16}
	newer, bare := pretend(t, "18.1", "postgres", "initdb", "pg_dump"), pretend(t, "17.1", "postgres", "initdb")
	s := offline(server(t, "15.1"), newer, bare)
	for min, want := range map[int]string{15: near.Dir, 16: near.Dir, 17: newer, 18: newer} {
		if got, err := s.ClientTool(t.Context(), "pg_dump", min, near); err != nil || got != filepath.Join(want, "pg_dump") {
			t.Errorf("at least %d: %s, %v", min, got, err)
		}
	}
	_, err := s.ClientTool(t.Context(), "pg_dump", 19, near)
	if err == nil || !strings.Contains(err.Error(), "postgresql-client-19") {
		t.Errorf("the remedy is not named: %v", err)
	}
	if got, err := s.ClientTool(t.Context(), "pg_restore", 15, near); err == nil {
		t.Errorf("found %s", got)
	}
}

func TestBinariesOfThisMachine(t *testing.T) {
	bin := postgrestest.Binaries(t)
	if bin.Major < binaries.OldestMajor || !filepath.IsAbs(bin.Tool("postgres")) || bin.Detail == "" {
		t.Errorf("found %+v", bin)
	}
}
