package binaries

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

// DefaultMirror returns the Maven repository that embedded-postgres downloads
// from. It reads the library's unexported field, so that it follows the library.
func DefaultMirror() string {
	return reflect.ValueOf(embeddedpostgres.DefaultConfig()).FieldByName("binaryRepositoryURL").String()
}

// releases returns the versions that embedded-postgres knows, by major.
func releases() map[int]embeddedpostgres.PostgresVersion {
	return map[int]embeddedpostgres.PostgresVersion{
		15: embeddedpostgres.V15,
		16: embeddedpostgres.V16,
		17: embeddedpostgres.V17,
		18: embeddedpostgres.V18,
	}
}

// NewestRelease is the major version that is downloaded if any will do.
const NewestRelease = 18

// download fetches PostgreSQL (major 0 = the newest) through embedded-postgres,
// which tests the binaries by starting them once, and keeps them in
// CacheDir/<version>. One rename creates that directory, complete, after the
// test. The end of ctx stops a download at once; the test takes a few seconds and
// is completed.
func (s Search) download(ctx context.Context, major int) (Set, error) {
	if major == 0 {
		major = NewestRelease
	}
	release, ok := releases()[major]
	switch {
	case !ok:
		return Set{}, fmt.Errorf("there is no download of PostgreSQL %d: install the package postgresql-%d", major, major)
	case s.NoFetch:
		return Set{}, errors.New("not tried")
	case s.CacheDir == "":
		return Set{}, errors.New("there is no cache directory")
	}
	unlock, err := s.lockCache(ctx)
	if err != nil {
		return Set{}, err
	}
	defer unlock()
	home := filepath.Join(s.CacheDir, strings.TrimSuffix(string(release), ".0"))
	if bin, err := probe(ctx, filepath.Join(home, "bin"), OriginDownloaded); err == nil {
		return bin, nil // another process was faster
	}
	if err := s.fetch(ctx, release, home); err != nil {
		return Set{}, err
	}
	return probe(ctx, filepath.Join(home, "bin"), OriginDownloaded)
}

// fetch creates the directory home. The caller holds the cache's lock.
func (s Search) fetch(ctx context.Context, release embeddedpostgres.PostgresVersion, home string) error {
	scratch, err := s.scratchDir()
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	mirror := s.Mirror
	if mirror == "" {
		mirror = DefaultMirror()
	}
	s.logger().Info("fetching PostgreSQL", "version", string(release), "from", mirror)
	relay, err := newRelay(ctx, mirror)
	if err != nil {
		return err
	}
	err = tryDownload(ctx, release, scratch, relay.url)
	relayed := relay.close()
	if err != nil {
		// embedded-postgres does not say what the repository answered.
		return fmt.Errorf("fetch PostgreSQL %s from %s: %w", release, mirror, errors.Join(relayed, ctx.Err(), err))
	}
	if err := os.RemoveAll(home); err != nil { // one that no longer works
		return fmt.Errorf("replace %s: %w", home, err)
	}
	return publishDir(filepath.Join(scratch, "unpacked"), home)
}

// tryDownload has embedded-postgres download, unpack, start and stop the release,
// all of it below scratch and in a temporary data directory.
func tryDownload(ctx context.Context, release embeddedpostgres.PostgresVersion, scratch, repository string) error {
	port, err := scratchPort()
	if err != nil {
		return err
	}
	trial, err := os.MkdirTemp("", "holdfast-trial-")
	if err != nil {
		return fmt.Errorf("make scratch directory: %w", err)
	}
	defer os.RemoveAll(trial)
	database := embeddedpostgres.NewDatabase(embeddedpostgres.DefaultConfig().
		Version(release).
		BinaryRepositoryURL(repository).
		CachePath(filepath.Join(scratch, "archive")).
		BinariesPath(filepath.Join(scratch, "unpacked")).
		RuntimePath(filepath.Join(trial, "run")). // Start removes it first
		DataPath(filepath.Join(trial, "data")).
		Port(uint32(port)).
		Password(rand.Text()). // it listens on localhost during the test
		StartParameters(map[string]string{"unix_socket_directories": "", "fsync": "off"}).
		StartTimeout(time.Minute).
		Logger(io.Discard))
	if err := database.Start(); err != nil {
		return err
	}
	if err := database.Stop(); err != nil {
		return fmt.Errorf("stop the scratch instance: %w", err)
	}
	return ctx.Err()
}

// scratchPort returns a port that is free now.
func scratchPort() (int, error) {
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
