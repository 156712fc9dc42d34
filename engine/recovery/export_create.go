package recovery

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"slices"
	"time"

	"holdfast/blobstore"
	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

const (
	// ExportInterval is how often workers check for exports to try again.
	ExportInterval = 15 * time.Second
	// ExportsAtOnce is how many exports are made at once, each of another
	// organization.
	ExportsAtOnce = 4
	// ExportAttempts is how often an export is tried. ExportRetry is the wait after
	// the first failure; it doubles with each attempt.
	ExportAttempts = 4
	ExportRetry    = time.Minute
	// exportLockWait is how long a dump waits for a table that a session has locked.
	exportLockWait = 5 * time.Minute
)

// ExportCreate requests an export of the database dbname and returns its record at once. An export that has not begun yet
// serves the request too. It wakes a database that sleeps to look for one beside the tenant's.
func (s *Service) ExportCreate(ctx context.Context, call *model.Call, database, dbname string) (ExportView, error) {
	if err := s.core.ClaimIdempotencyKey(call); err != nil {
		return ExportView{}, err
	}
	db, err := s.databases.Database(call, database)
	if err != nil {
		return ExportView{}, err
	}
	switch status, reason := s.databases.LiveStatus(db); {
	case db.Sandbox:
		return ExportView{}, noBackupsOf(db)
	case !s.core.Config.Exports:
		return ExportView{}, model.Errorf(model.CodeForbidden, "the operator has turned exports off (--no-exports)")
	case status != model.DatabaseAvailable:
		return ExportView{}, databases.NotAvailable(db, status, reason)
	}
	beside := databases.Beside(db, dbname)
	if beside != "" {
		if err := s.databases.AdmitDumper(ctx, db, beside); err != nil {
			return ExportView{}, err
		}
		call.Note("dbname", beside)
	}
	var x model.Export
	err = s.core.Change(call, func(tx *meta.Tx) (err error) {
		x, err = s.requestExport(tx, db.Organization, db.ID, beside)
		if err == nil {
			err = request(tx, x.ID)
		}
		call.Resource = model.Resource{Type: model.ResourceExport, ID: x.ID, Name: db.Name}
		return err
	})
	if err != nil {
		return ExportView{}, err
	}
	s.Exports.Wake()
	return s.exportView(x), nil
}

// RequestExport records that the database is to be exported after a backup, unless exports are off.
func (s *Service) RequestExport(tx *meta.Tx, b model.Backup) error {
	if !s.core.Config.Exports {
		return nil
	}
	x, err := s.requestExport(tx, b.Organization, b.Database, "")
	if err == nil && b.Type == model.BackupManual {
		err = request(tx, x.ID)
	}
	return err
}

// request notes that somebody asked for an export.
func request(tx *meta.Tx, id string) error {
	return tx.Exports().Change(id, func(x *model.Export) { x.Requested = true })
}

// requestExport returns the pending export of the database dbname, or a new one in the place of those that have failed.
func (s *Service) requestExport(tx *meta.Tx, organization, database, dbname string) (model.Export, error) {
	all, err := core.AllUnder(tx.Exports(), database)
	if err != nil {
		return model.Export{}, err
	}
	for _, x := range all {
		if x.DBName == dbname && x.Status == model.ExportPending {
			return x, nil
		}
	}
	err = dropExports(tx, all, func(x model.Export) bool { return x.DBName == dbname && x.Status == model.ExportFailed })
	if err == nil {
		err = boundExports(tx, all, dbname)
	}
	if err != nil {
		return model.Export{}, err
	}
	now := s.core.Clock()
	x := model.Export{
		ID: s.core.NewID(model.ResourceExport), Organization: organization, Database: database, DBName: dbname,
		Status: model.ExportPending, CreatedAt: now, NotBefore: now,
	}
	return x, tx.Exports().Insert(x)
}

// MakeNextExport makes the oldest export that can be made now and reports whether it made one. It makes one export per
// organization at a time, so that sessions that block one organization's export do not delay the others.
func (s *Service) MakeNextExport(ctx context.Context) bool {
	due, err := s.dueExports(ctx)
	if err != nil {
		s.core.Log.Error("look for exports to make", "error", err)
	}
	for _, x := range due {
		release, err := s.core.Claims.Take(exportClaim(x.Organization), "an export")
		if err != nil {
			continue // one of the organization's exports is running
		}
		defer release()
		return s.makeDueExport(ctx, x)
	}
	return false
}

func exportClaim(organization string) string { return organization + "/export" }

// makeDueExport makes an export, unless another worker has begun it.
func (s *Service) makeDueExport(ctx context.Context, x model.Export) bool {
	db, op, err := s.beginExport(x.ID)
	if errors.Is(err, meta.ErrNotFound) || errors.Is(err, errBegun) || errors.Is(err, errChanging) {
		return true // the caller looks for others
	}
	if err == nil {
		dumping, ended := s.databases.Cancelable(ctx, op.ID)
		defer ended()
		err = because(dumping, ctx, s.makeExport(dumping, x, db, op))
	}
	if err == nil || ctx.Err() != nil { // if ctx has ended, the next start makes the export
		return err == nil
	}
	s.core.Log.Warn("export", "database", x.Database, "attempt", x.Attempts+1, "error", err)
	return s.postponeExport(x, op, err) == nil
}

var (
	// errBegun means that another worker has begun the export.
	errBegun = errors.New("the export was begun already")
	// errChanging means that a change of the database is under way.
	errChanging = errors.New("the database is being changed")
)

// beginExport records that an export is being made, and returns its database and the operation.
func (s *Service) beginExport(id string) (db model.Database, op model.DatabaseOperation, err error) {
	err = s.core.Meta.Update(func(tx *meta.Tx) error {
		x, err := tx.Exports().Update(id, func(x *model.Export) error {
			if x.Status != model.ExportPending {
				return errBegun
			}
			x.Status = model.ExportRunning
			return nil
		})
		if err != nil {
			return err
		}
		if db, err = tx.Databases().Get(x.Database); err != nil {
			return err
		}
		if db.PendingChange != nil { // the server may not have the name of the record yet
			return errChanging
		}
		op = s.databases.NewOperation(db, model.OperationExport, "dumping")
		op.Export = id
		return databases.InsertBeside(tx, op)
	})
	return db, op, err
}

// dueExports returns the exports of available databases that may be tried now,
// the oldest first. One that nobody asked for waits while its database is unused.
func (s *Service) dueExports(ctx context.Context) (due []model.Export, err error) {
	databases := map[string]model.Database{}
	err = s.core.Meta.View(func(tx *meta.Tx) error {
		return tx.Exports().All(func(x model.Export) error {
			if x.Status != model.ExportPending || !core.IsDue(s.core.Clock(), x.NotBefore, ExportRetry<<ExportAttempts) {
				return nil
			}
			db, err := tx.Databases().Get(x.Database)
			if err != nil {
				return err
			}
			if status, _ := s.databases.LiveStatus(db); status == model.DatabaseAvailable && db.Trash == nil && db.PendingChange == nil {
				due = append(due, x)
				databases[db.ID] = db
			}
			return nil
		})
	})
	due = slices.DeleteFunc(due, func(x model.Export) bool { return !x.Requested && s.isUnused(ctx, databases[x.Database]) })
	slices.SortFunc(due, func(a, b model.Export) int { return cmp.Compare(a.ID, b.ID) })
	return due, err
}

// makeExport dumps the database into a blob and publishes it.
func (s *Service) makeExport(ctx context.Context, x model.Export, db model.Database, op model.DatabaseOperation) error {
	if err := s.checkSpaceForBackup(db.ID); err != nil {
		return err
	}
	release, err := s.databases.Awaken(db, false)
	if err != nil {
		return err
	}
	defer release()
	dbname, outdated, err := s.prepareExport(ctx, x, db)
	if err != nil {
		return err
	}
	w, err := s.core.Blobs.Create(ctx)
	if err != nil {
		return err
	}
	sum := sha256.New()
	if err := s.dump(ctx, db, dbname, io.MultiWriter(w, sum)); err != nil {
		return errors.Join(err, w.Abort())
	}
	ref, size, err := w.Commit()
	if err != nil {
		return err
	}
	x.Status, x.Blob, x.SizeBytes, x.Error = model.ExportReady, string(ref), size, ""
	x.ChecksumSHA256, x.Version = hex.EncodeToString(sum.Sum(nil)), db.Version
	x.CreatedAt = s.core.Clock()
	x.Filename = exportFilename(db, x)
	return s.publishExport(db, x, op, outdated)
}

// dumpTool returns the path of a pg_dump for a database.
func (s *Service) dumpTool(ctx context.Context, db model.Database) (string, error) {
	bin, err := s.databases.Majors.Find(ctx, db.Major)
	if err != nil {
		return "", err
	}
	tool, err := s.core.Config.Search.ClientTool(ctx, "pg_dump", db.Major, bin)
	if err != nil {
		return "", &model.Error{Code: model.CodeConflict, Message: err.Error(), Err: err} // with the remedy
	}
	return tool, nil
}

func (s *Service) dump(ctx context.Context, db model.Database, dbname string, w io.Writer) error {
	tool, err := s.dumpTool(ctx, db)
	if err != nil {
		return err
	}
	return s.databases.Instances.Dump(ctx, db.ID, tool, dbname, exportLockWait, w)
}

// publishExport commits a finished export, which replaces the older ones of the same database and the outdated ones.
func (s *Service) publishExport(db model.Database, x model.Export, op model.DatabaseOperation, outdated func(model.Export) bool) error {
	call := s.core.System(model.ActionExportCreate, db.Organization, model.Resource{Type: model.ResourceExport, ID: x.ID, Name: x.Filename})
	err := s.core.Change(call, func(tx *meta.Tx) error {
		all, err := core.AllUnder(tx.Exports(), x.Database)
		if err != nil {
			return err
		}
		if err := dropExports(tx, all, func(older model.Export) bool { return older.DBName == x.DBName && older.ID < x.ID || outdated(older) }); err != nil {
			return err
		}
		if err := tx.Exports().Change(x.ID, func(r *model.Export) { *r = x }); err != nil {
			return err
		}
		if err := s.databases.CloseBeside(tx, op.ID, nil); err != nil {
			return err
		}
		return tx.ClaimBlob(x.Blob)
	})
	if errors.Is(err, meta.ErrReadOnly) { // a record may refer to the blob, as the next start will find
		return err
	}
	if err != nil { // no record refers to the blob
		return errors.Join(err, s.core.Blobs.Remove(blobstore.Ref(x.Blob)))
	}
	return s.core.RemoveDiscarded()
}

// postponeExport schedules another attempt at a failed export, or marks it as
// failed after the last one, or if it was cancelled, or if its database is gone or closed.
func (s *Service) postponeExport(x model.Export, op model.DatabaseOperation, cause error) error {
	record := func(tx *meta.Tx) error {
		if err := s.databases.CloseBeside(tx, op.ID, cause); err != nil {
			return err
		}
		ended, err := tx.Operations().Get(op.ID)
		if err != nil {
			return err
		}
		return tx.Exports().Change(x.ID, func(x *model.Export) {
			x.Attempts++
			x.Status, x.Error = model.ExportPending, databases.OperationMessage(cause)
			x.NotBefore = s.core.Clock().Add(ExportRetry << (x.Attempts - 1))
			if x.Attempts >= ExportAttempts || ended.Status == model.OperationCancelled || cannotExport(cause) {
				x.Status = model.ExportFailed
			}
		})
	}
	return s.core.RecordLater(s.core.Meta.Update(record), "the end of an export", record)
}

// RecoverExports makes exports pending again that were running when the appliance stopped, and those whose bytes
// a recovery did not bring back.
func (s *Service) RecoverExports() error {
	exports, err := meta.Value(s.core.Meta.View, func(tx *meta.Tx) ([]model.Export, error) {
		return tx.Exports().Where(func(model.Export) bool { return true })
	})
	if err != nil {
		return err
	}
	again := map[string]bool{}
	for _, x := range exports {
		again[x.ID] = x.Status == model.ExportRunning || isReady(x) && !s.core.Blobs.Has(blobstore.Ref(x.Blob))
	}
	return s.core.Meta.Update(func(tx *meta.Tx) error {
		cancelled, err := s.databases.RecoverBeside(tx, model.OperationExport, core.ErrInterrupted)
		if err != nil {
			return err
		}
		for _, op := range cancelled {
			if !again[op.Export] {
				continue
			}
			delete(again, op.Export)
			if err := tx.Exports().Change(op.Export, func(x *model.Export) { x.Status, x.Error = model.ExportFailed, op.Error }); err != nil {
				return err
			}
		}
		return tx.Exports().ChangeWhere(func(x model.Export) bool { return again[x.ID] },
			func(x *model.Export) { x.Status, x.NotBefore = model.ExportPending, s.core.Clock() })
	})
}
