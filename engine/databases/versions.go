package databases

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"holdfast/engine/model"
	"holdfast/engine/postgres"
	"holdfast/engine/postgres/binaries"
)

// Version is a major version of PostgreSQL that a database can have here.
type Version = binaries.Available

// Versions returns the major versions of PostgreSQL that a database can have here,
// the newest first.
func (s *Service) Versions(ctx context.Context, call *model.Call) ([]Version, error) {
	call.Resource = model.Resource{Type: model.ResourceOrganization, ID: call.Organization}
	all := s.core.Config.Search.Majors(ctx)
	for n := range all {
		all[n].Default = all[n].Major == s.Binaries.Major // it was found at the start
	}
	return all, ctx.Err()
}

// ParseMajor parses the version that a client asks for, a major such as "16". field
// names it in errors.
func ParseMajor(field, version string) (int, error) {
	major, err := strconv.Atoi(version)
	if err != nil || strconv.Itoa(major) != version {
		return 0, model.Invalid(field, "%q is not a major version of PostgreSQL, such as %q", version, strconv.Itoa(binaries.OldestMajor))
	}
	if major < binaries.OldestMajor {
		return 0, model.Invalid(field, "PostgreSQL %d is too old: %d is the oldest that databases can have", major, binaries.OldestMajor)
	}
	return major, nil
}

// FindVersion returns the PostgreSQL of a major version that a client asks for in
// a field; it fetches one that is not installed.
func (s *Service) FindVersion(ctx context.Context, field, version string) (binaries.Set, error) {
	if version == "" || !s.Started() {
		return s.Binaries, nil
	}
	major, err := ParseMajor(field, version)
	if err != nil {
		return binaries.Set{}, err
	}
	bin, err := s.Majors.Find(ctx, major)
	if err == nil || ctx.Err() != nil {
		return bin, err
	}
	return bin, &model.Error{
		Code: model.CodeValidation, Err: err,
		Message: fmt.Sprintf("%s: this machine has no PostgreSQL %d: install it (on Debian the package postgresql-%d); there is %s",
			field, major, major, s.knownMajors(ctx)),
	}
}

func (s *Service) knownMajors(ctx context.Context) string {
	var names []string
	for _, v := range s.core.Config.Search.Majors(ctx) {
		if !v.Fetch {
			names = append(names, v.Version)
		}
	}
	return "PostgreSQL " + strings.Join(names, ", ")
}

// prepare makes a prepared data directory of the record's major version. The pool
// has directories of the default one; of another one it keeps the template.
func (s *Service) prepare(ctx context.Context, db model.Database, dir string) error {
	if db.Major == s.Binaries.Major {
		return s.WarmPool.Take(ctx, dir)
	}
	bin, err := s.Majors.Find(ctx, db.Major)
	if err != nil {
		return err
	}
	pool, err := s.pools.of(bin, func() (*postgres.WarmPool, error) {
		return postgres.NewWarmPool(postgres.WarmPoolOptions{
			Dir: filepath.Join(s.warmDirectory(), "major-"+strconv.Itoa(bin.Major)), Bin: bin, SocketDir: s.SocketDir, Log: s.core.Log,
		})
	})
	if err != nil {
		return fmt.Errorf("open templates of PostgreSQL %d: %w", bin.Major, err)
	}
	return pool.Take(ctx, dir)
}

// ClosePools closes the pools of prepared directories.
func (s *Service) ClosePools() {
	if s.WarmPool != nil {
		s.WarmPool.Close()
	}
	s.pools.close()
}

// errPoolsClosed says that the appliance stops.
var errPoolsClosed = errors.New("the appliance is being stopped")
