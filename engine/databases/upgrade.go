package databases

import (
	"context"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/model"
	"holdfast/engine/postgres"
	"holdfast/engine/postgres/binaries"
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
		return from, to, postgres.RefusePrograms("server and client programs", major)
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

// UpgradeSlots returns the names of the replication slots of a running database that an upgrade drops.
func (s *Service) UpgradeSlots(ctx context.Context, db model.Database) (names []string, err error) {
	slots, err := s.slots(ctx, db)
	for _, slot := range slots {
		if !slot.Temporary && !slot.Lost() {
			names = append(names, slot.Name)
		}
	}
	return names, err
}

// refuseExtensions refuses extensions whose files a version lacks, unless it is not known
// where it keeps them. The upgrade itself asks the new server.
func refuseExtensions(known []postgres.Extension, to binaries.Set) error {
	var missing []string
	for _, x := range known {
		if has, sure := to.HasExtension(x.Name); x.Installed != "" && !has && sure {
			missing = append(missing, x.Name)
		}
	}
	return postgres.RefuseMissing(missing, to.Major)
}
