package databases

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/model"
	"holdfast/engine/postgres"
	"holdfast/engine/postgres/binaries"
	"holdfast/engine/postgres/extensions"
)

// UpgradeVersions returns the PostgreSQL that a database runs on and the newer one that
// a client wants to upgrade it to, of those on this machine. A download has no
// pg_upgrade, so nothing is fetched.
func (s *Service) UpgradeVersions(ctx context.Context, db model.Database, field, version string) (from, to binaries.Set, err error) {
	major, err := ParseMajor(field, version)
	if err != nil {
		return from, to, err
	}
	if major <= db.Major {
		return from, to, model.Invalid(field, "%s runs PostgreSQL %s already: an upgrade needs a newer major version", db.Name, db.Version)
	}
	if from, err = s.Majors.Find(ctx, db.Major); err != nil {
		return from, to, err
	}
	to, found := s.Majors.Newest(ctx, major)
	if !found || to.Origin == binaries.OriginDownloaded {
		return from, to, model.Errorf(model.CodeConflict,
			"an upgrade needs PostgreSQL %d with its client programs on this machine: the operator must install the package postgresql-%d (of Debian and of apt.postgresql.org)", major, major)
	}
	return from, to, postgres.RefuseUpgrade(from, to)
}

// RefuseUpgrade refuses what an upgrade of a running database to a version cannot bring
// over, as far as the server knows.
func (s *Service) RefuseUpgrade(ctx context.Context, db model.Database, to binaries.Set) error {
	if err := s.Inspect(ctx, db, Maintenance, postgres.RefusePrepared); err != nil {
		return err
	}
	return s.Inspect(ctx, db, db.Name, func(ctx context.Context, conn *pgx.Conn) error {
		known, err := postgres.Extensions(ctx, conn)
		if err != nil {
			return err
		}
		return refuseExtensions(known, to)
	})
}

// refuseExtensions refuses extensions whose files a version lacks, unless it is not known
// where it keeps them. The upgrade itself asks the new server.
func refuseExtensions(known []postgres.Extension, to binaries.Set) error {
	var lacks, gone []string
	for _, x := range known {
		has, sure := to.HasExtension(x.Name)
		switch {
		case x.Installed == "" || has || !sure:
		case x.Before != 0 && to.Major >= x.Before:
			gone = append(gone, x.Name)
		default:
			lacks = append(lacks, x.Name+" ("+extensions.Find(x.Name).Install(to.Major)+")")
		}
	}
	switch {
	case len(gone) > 0:
		return model.Errorf(model.CodeConflict, "PostgreSQL %d does not have the extensions %s: drop them first", to.Major, strings.Join(gone, ", "))
	case len(lacks) > 0:
		return model.Errorf(model.CodeConflict, "PostgreSQL %d of this machine lacks the files of extensions that the database has: %s; or drop them first",
			to.Major, strings.Join(lacks, "; "))
	}
	return nil
}
