package imports

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"holdfast/engine/importer"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
	"holdfast/engine/postgres/binaries"
)

// longestPublication is PostgreSQL's limit of a name, in bytes.
const longestPublication = 63

// checkFollow validates what an import that follows needs besides.
func (in NewImport) checkFollow() error {
	switch {
	case !in.Follow && in.Publication != "":
		return model.Invalid(importer.PublicationField, "goes with the mode follow only")
	case in.Follow && in.Publication == "":
		return model.Invalid(importer.PublicationField, "must name the publication of the source that the new database follows; make one there with CREATE PUBLICATION name FOR ALL TABLES;")
	case len(in.Publication) > longestPublication || strings.ContainsRune(in.Publication, 0):
		return model.Invalid(importer.PublicationField, "must have at most %d bytes, and no zero byte", longestPublication)
	default:
		return nil
	}
}

// version returns the PostgreSQL of the new database.
func (s *Service) version(ctx context.Context, in NewImport) (binaries.Set, error) {
	if in.Follow && in.Version == "" && s.databases.Started() && !canFollow(s.databases.Binaries) {
		in.Version = s.newestFollower(ctx)
	}
	bin, err := s.databases.FindVersion(ctx, "version", in.Version)
	if err == nil && in.Follow && bin.Major > 0 {
		err = refuseFollower(bin)
	}
	return bin, err
}

// newestFollower returns the newest major version that can follow, of those installed or else of those that can be
// downloaded; "" if there is none.
func (s *Service) newestFollower(ctx context.Context) (fetched string) {
	for _, v := range s.core.Config.Search.Majors(ctx) {
		switch {
		case !v.Fetch && canFollow(v.Set):
			return strconv.Itoa(v.Major)
		case v.Fetch && v.Major >= postgres.OldestFollower && fetched == "":
			fetched = strconv.Itoa(v.Major)
		}
	}
	return fetched
}

func canFollow(bin binaries.Set) bool {
	return bin.Major >= postgres.OldestFollower && bin.Has(subscriberLibrary)
}

// refuseFollower says why a database on bin cannot follow another, nil if it can.
func refuseFollower(bin binaries.Set) error {
	switch {
	case bin.Major < postgres.OldestFollower:
		return model.Invalid("version", "PostgreSQL %d cannot apply changes with the rights of the database's owner (run_as_owner came with %d): "+
			"a database that follows needs %[2]d or newer; the operator can install one (on Debian such as postgresql-%[3]d)", bin.Major, postgres.OldestFollower, binaries.NewestRelease)
	case !bin.Has(subscriberLibrary):
		return model.Errorf(model.CodeValidation, "the PostgreSQL %s here lacks %s, without which no database can follow another: "+
			"the operator must install the server's whole package (on Debian postgresql-%d)", bin.Version, subscriberLibrary, bin.Major)
	default:
		return nil
	}
}

// subscriberLibrary is the module by which a server reads another's changes.
const subscriberLibrary = "libpqwalreceiver"

// newFollow returns how the new database will follow its source.
func (s *Service) newFollow(in NewImport, id string) *model.ImportFollow {
	if !in.Follow {
		return nil
	}
	return &model.ImportFollow{
		Publication: in.Publication, Slot: "holdfast_" + strings.ToLower(id),
		SourceURL: s.core.Sealer.Seal(sourcePurpose(id), in.SourceURL),
	}
}

func sourcePurpose(id string) string { return "source of the import " + id }

// sourceOf returns the source of an import that follows, from its record.
func (s *Service) sourceOf(record model.Import) (importer.Source, error) {
	url, err := s.core.Sealer.Open(sourcePurpose(record.ID), record.Follow.SourceURL)
	if err != nil {
		return importer.Source{}, fmt.Errorf("open the source of an import: %w", err)
	}
	source, err := importer.ParseSource(url.Reveal())
	source.RefusePort = func(port int) (string, error) { return s.refusePort(record.Organization, port) }
	return source, err
}

// subscription returns the subscription of an import that follows.
func subscription(db model.Database, follow model.ImportFollow, conninfo string) postgres.Subscription {
	return postgres.Subscription{
		Name: follow.Slot, Owner: db.Owner, Publication: follow.Publication, Slot: follow.Slot, ConnInfo: model.NewSecret(conninfo),
	}
}

// planFile is a file in the data directory, which the server ignores: an importer.Plan.
const planFile = "holdfast.follow"

func (s *Service) planPath(db model.Database) string {
	return filepath.Join(s.databases.DataDirectory(db.ID, db.Generation), planFile)
}
