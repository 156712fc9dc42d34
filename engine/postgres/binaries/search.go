package binaries

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
)

// ErrNotFound means that no working PostgreSQL was found; the text around it
// names every place that was tried and why it was rejected.
var ErrNotFound = errors.New("no PostgreSQL found")

// ErrNoBundle means that this build contains no PostgreSQL.
var ErrNoBundle = errors.New("this build has no bundled PostgreSQL")

// Search says where to look for PostgreSQL. The zero value searches the default
// places and stores nothing: downloads and bundles need a CacheDir.
type Search struct {
	Explicit  string                        // the operator's directory of programs; if set, the only place
	CacheDir  string                        // where bundles and downloads are unpacked and kept
	Mirror    string                        // base URL of another Maven repository; "" = embedded-postgres's own
	NoFetch   bool                          // never download
	Installed func() []string               // directories to look in; nil = the default places
	Bundle    func() (io.ReadCloser, error) // nil = the build's own
	Log       *slog.Logger                  // nil = discard
}

// Candidate is a place that was considered, and what was found there.
type Candidate struct {
	Set       // Dir and Origin always; the rest when Err is nil
	Err error // why it is rejected
}

// Find returns the first PostgreSQL that works, in this order: the explicit one,
// the newest installed one, the bundled one, an earlier download, a new download.
// An explicit directory that does not work is an error.
func (s Search) Find(ctx context.Context) (Set, error) { return s.FindMajor(ctx, 0) }

// FindMajor is Find for one major version (0 = any), for an existing data
// directory. It skips an explicit directory of another major.
func (s Search) FindMajor(ctx context.Context, major int) (Set, error) {
	reasons := ErrNotFound
	for _, c := range s.sources() {
		for _, found := range c(ctx) {
			switch {
			case found.Err == nil && (major == 0 || found.Major == major):
				return found.Set, nil
			case found.Origin == OriginFlag && found.Err != nil:
				return Set{}, fmt.Errorf("PostgreSQL in %s does not work: %w", found.Dir, found.Err)
			}
			reasons = fmt.Errorf("%w\n%s", reasons, found)
		}
	}
	if ctx.Err() != nil {
		return Set{}, ctx.Err()
	}
	bin, err := s.download(ctx, major)
	if err != nil {
		return Set{}, fmt.Errorf("%w\ndownload: %w", reasons, err)
	}
	return bin, nil
}

// Candidates lists everything Find considers, in its order, and why each is
// accepted or rejected. It downloads nothing.
func (s Search) Candidates(ctx context.Context) []Candidate {
	var all []Candidate
	for _, source := range s.sources() {
		all = append(all, source(ctx)...)
	}
	return all
}

// String describes the candidate in one line, for people.
func (c Candidate) String() string {
	if c.Err != nil {
		return fmt.Sprintf("%s %s: %v", c.Origin, c.Dir, c.Err)
	}
	return c.Detail
}

// sources returns the places in order of preference. Each is probed only if the
// ones before it have no match.
func (s Search) sources() []func(context.Context) []Candidate {
	return []func(context.Context) []Candidate{s.explicit, s.installed, s.bundled, s.downloaded}
}

func (s Search) explicit(ctx context.Context) []Candidate {
	if s.Explicit == "" {
		return nil
	}
	dir, err := filepath.Abs(s.Explicit)
	if err != nil {
		return []Candidate{{Set: Set{Dir: s.Explicit, Origin: OriginFlag}, Err: err}}
	}
	return []Candidate{candidate(ctx, dir, OriginFlag)}
}

// installed probes the installed ones, newest first, those that do not work last.
func (s Search) installed(ctx context.Context) []Candidate {
	places := s.Installed
	if places == nil {
		places = func() []string { return installedPlaces(ctx) }
	}
	var found []Candidate
	for _, dir := range distinctDirs(places()) {
		found = append(found, candidate(ctx, dir, OriginInstalled))
	}
	slices.SortStableFunc(found, newestFirst)
	return found
}

func (s Search) downloaded(ctx context.Context) []Candidate {
	var found []Candidate
	dirs, _ := filepath.Glob(filepath.Join(s.CacheDir, "[0-9]*", "bin"))
	for _, dir := range dirs {
		if s.CacheDir != "" {
			found = append(found, candidate(ctx, dir, OriginDownloaded))
		}
	}
	slices.SortStableFunc(found, newestFirst)
	return found
}

func candidate(ctx context.Context, dir string, origin Origin) Candidate {
	bin, err := probe(ctx, dir, origin)
	if err != nil {
		return Candidate{Set{Dir: dir, Origin: origin}, err}
	}
	return Candidate{Set: bin}
}

func newestFirst(a, b Candidate) int {
	switch {
	case a.Err == nil && b.Err != nil:
		return -1
	case a.Err != nil && b.Err == nil:
		return 1
	}
	return compareVersions(b.Set, a.Set)
}

// compareVersions orders by major, then by minor; a beta is older than the
// release.
func compareVersions(a, b Set) int {
	if a.Major != b.Major {
		return a.Major - b.Major
	}
	return minor(a.Version) - minor(b.Version)
}

func minor(version string) int {
	var major, minor int
	if n, _ := fmt.Sscanf(version, "%d.%d", &major, &minor); n < 2 {
		return -1
	}
	return minor
}

func (s Search) logger() *slog.Logger {
	if s.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return s.Log
}
