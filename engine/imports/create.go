package imports

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/importer"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/password"
	"holdfast/engine/postgres"
	"holdfast/engine/postgres/binaries"
)

// NewImport describes an import: the source and the new database.
type NewImport struct {
	Project   string
	Name      string       // of the new database
	SourceURL model.Secret // holds the source's password
	// SameCredentials gives the new database the source's user and password.
	SameCredentials bool
	Username        string       // "" means model.DefaultOwner
	Password        model.Secret // zero means generated
	Version         string       // the major version of PostgreSQL, such as "16"; "" means the default

	// Follow makes the new database follow the source after the copy, until Cutover. Publication is the source's.
	Follow      bool
	Publication string

	sandbox bool
}

// Create starts to copy a database from another server into a new one and returns its record at once. It refuses
// invalid input without contacting the source.
func (s *Service) Create(ctx context.Context, call *model.Call, in NewImport) (model.Import, error) {
	r, err := s.beginImport(ctx, call, in)
	if err != nil {
		return model.Import{}, err
	}
	return r.account.Snapshot(), nil
}

// beginImport starts an import; over is closed when it ends.
func (s *Service) beginImport(ctx context.Context, call *model.Call, in NewImport) (*importRun, error) {
	source, err := importer.ParseSource(in.SourceURL.Reveal())
	if err != nil {
		return nil, err
	}
	database, err := in.database(source)
	if err == nil {
		err = in.checkFollow()
	}
	if err != nil {
		return nil, err
	}
	if err := s.core.ClaimIdempotencyKey(call); err != nil {
		return nil, err
	}
	pgDump, err := s.PgDump(ctx, s.databases.Binaries.Major)
	if err != nil {
		return nil, err
	}
	bin, err := s.version(ctx, in)
	if err != nil {
		return nil, err
	}
	r, release, err := s.recordImport(call, in, database, bin, source.Describe())
	if err != nil {
		return nil, core.ExplainDiskFull(err)
	}
	organization := r.db.Organization
	source.RefusePort = func(port int) (string, error) { return s.refusePort(organization, port) }
	r.source, r.pgDump = source, pgDump
	s.begin(r, release)
	return r, nil
}

// begin runs an import in the background, and then releases its database.
func (s *Service) begin(r *importRun, release func()) {
	r.over, r.cutovers = make(chan struct{}), make(chan *cutoverRequest)
	id := r.account.Snapshot().ID
	s.runs.Store(id, r)
	s.accounts.Store(id, r.account)
	s.accounts.Store(r.op.ID, r.account)
	runCtx, ended := s.core.Cancels.Add(s.core.Lifetime, databases.ImportClaim(r.db.ID))
	s.core.Work.Go(func() {
		defer close(r.over)
		defer ended()
		defer release()
		s.runImport(runCtx, r)
	})
}

// database describes the new database.
func (in NewImport) database(source importer.Source) (databases.NewDatabase, error) {
	db := databases.NewDatabase{Project: in.Project, Name: in.Name, User: in.Username, Password: in.Password, Version: in.Version, Sandbox: in.sandbox, Untrusted: true}
	user := "username"
	if in.SameCredentials {
		if in.Username != "" || !in.Password.IsZero() {
			return db, model.Invalid("same_credentials", "does not go with username or password: give one or the other")
		}
		if source.Password.IsZero() {
			return db, model.Invalid("same_credentials", "the source_url has no password to take over; give a password, or leave it out for a generated one")
		}
		db.User, db.Password = source.User, source.Password
		user = "same_credentials"
	}
	if db.User != "" {
		if err := model.ValidateDatabaseUser(user, db.User); err != nil {
			return db, err
		}
	}
	if in.SameCredentials {
		if err := cmp.Or(password.ForImport(user, db.Password, db.Name, db.User), postgres.CheckPassword(user, db.Password)); err != nil {
			return db, err
		}
	}
	return db, db.Complete()
}

// PgDump returns the path of a pg_dump that can read servers of the major version
// and older.
func (s *Service) PgDump(ctx context.Context, major int) (string, error) {
	path, err := s.core.Config.Search.ClientTool(ctx, "pg_dump", major, s.databases.Binaries)
	if err != nil {
		return "", &model.Error{Code: model.CodeValidation, Message: fmt.Sprintf("imports need a program that is not on this machine: %v", err), Err: err}
	}
	return path, nil
}

// recordImport commits the import, its database, which claims name and port, and
// the operation that fills it.
func (s *Service) recordImport(
	call *model.Call, in NewImport, database databases.NewDatabase, bin binaries.Set, source model.ImportSource,
) (*importRun, func(), error) {
	db := s.databases.NewDatabase(call, database)
	db.Status, db.Version, db.Major, db.Following = model.DatabaseImporting, bin.Version, bin.Major, in.Follow
	op := s.databases.NewOperation(db, model.OperationImport, string(model.ImportPending))
	record := model.Import{
		ID: s.core.NewID(model.ResourceImport), Organization: db.Organization, Project: db.Project, Database: db.ID, Name: db.Name,
		Source: source, Status: model.ImportPending, Phase: "waiting", StartedAt: s.core.Clock(),
	}
	if record.Follow = s.newFollow(in, record.ID); record.Follow != nil {
		call.Note("mode", "follow")
	}
	call.Resource = model.Resource{Type: model.ResourceImport, ID: record.ID, Name: db.Name}
	call.Note("source", fmt.Sprintf("%s@%s/%s", source.User, net.JoinHostPort(source.Host, strconv.Itoa(source.Port)), source.Database))
	call.Note("database", db.ID)
	db, release, err := s.databases.ClaimDatabase(call, db, "an import", func(insert func(*meta.Tx) error) error {
		return s.core.Change(call, func(tx *meta.Tx) error {
			if err := insert(tx); err != nil {
				return err
			}
			if err := errors.Join(tx.Imports().Insert(record), dropOldImports(tx, record.Organization)); err != nil {
				return err
			}
			return databases.InsertOperation(tx, op, model.DatabaseImporting)
		})
	})
	if err != nil {
		return nil, nil, err
	}
	return &importRun{db: db, op: op, account: importer.NewAccount(record, s.core.Clock)}, release, nil
}

// ImportsKept is how many records of imports an organization keeps after their
// database was removed. The record of an existing database is always kept.
const ImportsKept = 100

// dropOldImports removes the oldest records beyond ImportsKept.
func dropOldImports(tx *meta.Tx, organization string) error {
	records, err := core.AllBy(tx.Imports(), meta.ByOrganization, meta.Key(organization))
	if err != nil {
		return err
	}
	var gone []model.Import // newest first
	for _, i := range records {
		_, err := tx.Databases().Get(i.Database)
		switch {
		case errors.Is(err, meta.ErrNotFound):
			gone = append(gone, i)
		case err != nil:
			return err
		}
	}
	for _, old := range gone[min(len(gone), ImportsKept):] {
		if err := errors.Join(tx.Imports().Delete(old.ID), databases.DropOperations(tx, old.Database, "")); err != nil {
			return err
		}
	}
	return nil
}
