package imports

import (
	"context"
	"fmt"
	"path/filepath"
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
		return model.Invalid(importer.PublicationField, "goes with \"mode\": \"follow\" only")
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
	bin, err := s.databases.FindVersion(ctx, "version", in.Version)
	if err == nil && in.Follow && bin.Major > 0 && bin.Major < postgres.OldestFollower {
		return bin, model.Invalid("version", "PostgreSQL %d cannot apply changes with the rights of the database's owner (run_as_owner came with %d); "+
			"send the version of a newer one, such as \"%[2]d\", for a database that follows", bin.Major, postgres.OldestFollower)
	}
	if err == nil && in.Follow && bin.Major > 0 && !bin.Has(subscriberLibrary) {
		return bin, model.Errorf(model.CodeValidation, "the PostgreSQL %s here lacks %s, without which no database can follow another: "+
			"the operator must install the server's whole package (on Debian postgresql-%d)", bin.Version, subscriberLibrary, bin.Major)
	}
	return bin, err
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
	source.Foreign = func(port int) (bool, error) { return s.isForeignPort(record.Organization, port) }
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
