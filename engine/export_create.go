package engine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"holdfast/blobstore"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

const (
	// exportInterval is how often it is looked whether an export may be tried
	// again.
	exportInterval = 15 * time.Second
	// exportsAtOnce is how many organizations have an export made at once.
	exportsAtOnce = 4
	// exportAttempts is how often an export is tried, exportRetry how long
	// after the first failure; it doubles.
	exportAttempts = 4
	exportRetry    = time.Minute
	// exportLockWait is how long a dump waits for a table that a session holds.
	exportLockWait = 5 * time.Minute
)

// requestExport records that the database is to be exported, unless it is
// already.
func (e *Engine) requestExport(tx *meta.Tx, b model.Backup) error {
	if !e.cfg.Exports {
		return nil
	}
	all, err := allUnder(tx.Exports(), b.Database)
	if err != nil {
		return err
	}
	for _, x := range all {
		if x.Status == model.ExportPending {
			return nil
		}
	}
	now := e.clock()
	return tx.Exports().Insert(model.Export{
		ID: e.newID(model.ResourceExport), Organization: b.Organization, Database: b.Database,
		Status: model.ExportPending, CreatedAt: now, NotBefore: now,
	})
}

// makeNextExport makes the oldest export that can be made now, and reports
// whether it made one. An organization has one made at a time: whoever holds
// his own up does not hold up the others'.
func (e *Engine) makeNextExport(ctx context.Context) bool {
	due, err := e.dueExports()
	if err != nil {
		e.log.Error("look for exports to make", "error", err)
	}
	for _, x := range due {
		release, err := e.claims.take(exportClaim(x.Organization), "an export")
		if err != nil {
			continue // one of the organization's is being made
		}
		defer release()
		return e.makeDueExport(ctx, x)
	}
	return false
}

func exportClaim(organization string) string { return organization + "/export" }

// makeDueExport makes an export that was due, unless it was made since.
func (e *Engine) makeDueExport(ctx context.Context, x model.Export) bool {
	db, err := e.beginExport(x.ID)
	if errors.Is(err, meta.ErrNotFound) || errors.Is(err, errBegun) {
		return true // there may be others
	}
	if err == nil {
		err = e.makeExport(ctx, x, db)
	}
	if err == nil || ctx.Err() != nil { // the next start makes it
		return err == nil
	}
	e.log.Warn("export", "database", x.Database, "attempt", x.Attempts+1, "error", err)
	return e.postponeExport(x, err) == nil
}

// errBegun says that somebody else has begun an export.
var errBegun = errors.New("the export was begun already")

// beginExport records that an export is being made, and returns its database.
func (e *Engine) beginExport(id string) (db model.Database, err error) {
	err = e.meta.Update(func(tx *meta.Tx) error {
		x, err := tx.Exports().Update(id, func(x *model.Export) error {
			if x.Status != model.ExportPending {
				return errBegun
			}
			x.Status = model.ExportRunning
			return nil
		})
		if err == nil {
			db, err = tx.Databases().Get(x.Database)
		}
		return err
	})
	return db, err
}

// dueExports returns the exports that may be tried, the oldest first, of
// databases that are available: the others wait.
func (e *Engine) dueExports() (due []model.Export, err error) {
	err = e.meta.View(func(tx *meta.Tx) error {
		return tx.Exports().All(func(x model.Export) error {
			if x.Status != model.ExportPending || e.clock().Before(x.NotBefore) {
				return nil
			}
			db, err := tx.Databases().Get(x.Database)
			if err != nil {
				return err
			}
			if status, _ := e.liveStatus(db); status == model.DatabaseAvailable && db.Trash == nil {
				due = append(due, x)
			}
			return nil
		})
	})
	slices.SortFunc(due, func(a, b model.Export) int { return cmp.Compare(a.ID, b.ID) })
	return due, err
}

// makeExport dumps the database into a blob and publishes it.
func (e *Engine) makeExport(ctx context.Context, x model.Export, db model.Database) error {
	if err := e.roomForBackup(db.ID); err != nil {
		return err
	}
	w, err := e.blobs.Create(ctx)
	if err != nil {
		return err
	}
	sum := sha256.New()
	if err := e.dump(ctx, db, io.MultiWriter(w, sum)); err != nil {
		return errors.Join(err, w.Abort())
	}
	ref, size, err := w.Commit()
	if err != nil {
		return err
	}
	x.Status, x.Blob, x.SizeBytes, x.Error = model.ExportReady, string(ref), size, ""
	x.ChecksumSHA256, x.Version = hex.EncodeToString(sum.Sum(nil)), db.Version
	x.CreatedAt = e.clock()
	x.Filename = fmt.Sprintf("%s-%s.dump", db.Name, x.CreatedAt.Format("20060102T150405Z"))
	return e.publishExport(db, x)
}

func (e *Engine) dump(ctx context.Context, db model.Database, w io.Writer) error {
	bin, err := e.majors.find(ctx, db.Major)
	if err != nil {
		return err
	}
	tool, err := e.cfg.Search.ClientTool(ctx, "pg_dump", db.Major, bin)
	if err != nil {
		return err
	}
	return e.instances.Dump(ctx, db.ID, tool, db.Name, exportLockWait, w)
}

// publishExport commits a finished export in place of the older ones.
func (e *Engine) publishExport(db model.Database, x model.Export) error {
	call := e.system(model.ActionExportCreate, db.Organization, model.Resource{Type: model.ResourceExport, ID: x.ID, Name: x.Filename})
	err := e.change(call, func(tx *meta.Tx) error {
		all, err := allUnder(tx.Exports(), x.Database)
		if err != nil {
			return err
		}
		for _, older := range all {
			if older.ID < x.ID {
				if err := dropExport(tx, older); err != nil {
					return err
				}
			}
		}
		if _, err := tx.Exports().Update(x.ID, func(r *model.Export) error {
			*r = x
			return nil
		}); err != nil {
			return err
		}
		return tx.ClaimBlob(x.Blob)
	})
	if err != nil { // the blob has no row
		return errors.Join(err, e.blobs.Remove(blobstore.Ref(x.Blob)))
	}
	return e.removeDiscarded()
}

// dropExport removes an export's record and discards its bytes.
func dropExport(tx *meta.Tx, x model.Export) error {
	if x.Blob != "" {
		if err := tx.DiscardBlob(x.Blob); err != nil {
			return err
		}
	}
	return tx.Exports().Delete(x.ID)
}

// postponeExport has a failed export tried again later, or gives it up.
func (e *Engine) postponeExport(x model.Export, cause error) error {
	return e.updateExport(x.ID, func(x *model.Export) {
		x.Attempts++
		x.Status, x.Error = model.ExportPending, operationMessage(cause)
		x.NotBefore = e.clock().Add(exportRetry << (x.Attempts - 1))
		if x.Attempts >= exportAttempts {
			x.Status = model.ExportFailed
		}
	})
}

func (e *Engine) updateExport(id string, change func(*model.Export)) error {
	return e.meta.Update(func(tx *meta.Tx) error {
		_, err := tx.Exports().Update(id, func(x *model.Export) error {
			change(x)
			return nil
		})
		return err
	})
}

// settleExports has what was being exported when the appliance ended exported
// again.
func (e *Engine) settleExports() error {
	return e.meta.Update(func(tx *meta.Tx) error {
		var running []string
		if err := tx.Exports().All(func(x model.Export) error {
			if x.Status == model.ExportRunning {
				running = append(running, x.ID)
			}
			return nil
		}); err != nil {
			return err
		}
		for _, id := range running {
			if _, err := tx.Exports().Update(id, func(x *model.Export) error {
				x.Status = model.ExportPending
				return nil
			}); err != nil {
				return err
			}
		}
		return nil
	})
}
