package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/move"
	"holdfast/engine/objects"
	"holdfast/engine/postgres"
	"holdfast/engine/recovery"
	"holdfast/internal/durable"
)

// An export is a snapshot of the appliance at one moment: hard links to the repositories of its backups, which the export
// keeps from changing, then the metadata, then the journal of its objects, then hard links to everything else, made while
// nothing may be removed. The archive is written from these links while the
// appliance keeps running. A running database is exported as a backup made for the export, from which the new appliance
// rebuilds it; a stopped one as its files.

// movingDir is the directory of the links.
const movingDir = "moving"

// ApplianceExport writes the whole appliance to w, as package move does: its
// metadata, key, certificates, objects, backups with their WAL, and databases.
func (e *Engine) ApplianceExport(ctx context.Context, call *model.Call, w io.Writer) error {
	release, err := e.Core.Claims.Take(movingDir, "an export of the appliance")
	if err != nil {
		return err
	}
	defer release()
	dir := filepath.Join(e.Core.Config.DataDir, movingDir)
	databases, releaseFiles, err := e.prepareMove(ctx, call, dir)
	if err != nil {
		return errors.Join(core.ExplainDiskFull(err), os.RemoveAll(dir))
	}
	defer releaseFiles()
	m := move.Manifest{Version: e.Core.Config.Version, CreatedAt: e.Core.Clock()}
	for _, db := range databases {
		m.Databases = append(m.Databases, db.Name)
	}
	call.Note("databases", fmt.Sprint(len(databases)))
	if m.ObjectsAway, err = e.Objects.Away(); err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	if m.ObjectsAway > 0 {
		call.Note("objects_away", fmt.Sprint(m.ObjectsAway))
		e.Core.Log.Warn("the export lacks large objects that are in the off-site copy only; the appliance it is imported to needs the same --offsite until they are all there", "objects", m.ObjectsAway)
	}
	err = move.Write(contextWriter{ctx, w}, dir, m)
	return errors.Join(err, os.RemoveAll(dir))
}

// contextWriter refuses writes once its context has ended.
type contextWriter struct {
	ctx context.Context
	w   io.Writer
}

// Write implements io.Writer.
func (c contextWriter) Write(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.w.Write(p)
}

// moveAttempts is how often the snapshot is tried: databases may be created,
// deleted or restored while their backups are made.
const moveAttempts = 5

// errDatabasesChanged means that the databases have changed since they were listed.
var errDatabasesChanged = errors.New("the databases have changed")

// prepareMove backs up each running database and links everything into dir. It returns the databases in use. Nothing
// touches the files of the others until the caller calls release.
func (e *Engine) prepareMove(ctx context.Context, call *model.Call, dir string) (databases []model.Database, release func(), err error) {
	backed := map[string]int{}
	for range moveAttempts {
		if databases, release, err = e.prepareMoveOnce(ctx, call, dir, backed); !errors.Is(err, errDatabasesChanged) {
			return databases, release, err
		}
	}
	return nil, nil, model.Errorf(model.CodeConflict,
		"databases were created, deleted or restored each time when all had their backups: export when nobody does that")
}

// prepareMoveOnce is one attempt of prepareMove; errDatabasesChanged asks for another. backed maps each database to the
// generation that already has its backup.
func (e *Engine) prepareMoveOnce(
	ctx context.Context, call *model.Call, dir string, backed map[string]int,
) (databases []model.Database, release func(), err error) {
	databases, trashed, err := e.movable()
	if err != nil {
		return nil, nil, err
	}
	for _, db := range databases {
		if !e.Databases.Started() || backed[db.ID] == db.Generation {
			continue
		}
		generation, err := e.backUpToMove(ctx, call, db)
		if model.CodeOf(err) == model.CodeNotFound { // deleted meanwhile
			return nil, nil, errDatabasesChanged
		}
		if err != nil {
			return nil, nil, err
		}
		backed[db.ID] = generation
	}
	release, err = e.claimToMove(trashed, func(id string) string { return id })
	if err != nil {
		return nil, nil, err
	}
	if err := e.linkToMove(dir, databases, trashed); err != nil {
		release()
		return nil, nil, err
	}
	return databases, release, nil
}

// claimToMove claims the given key of each database. The caller calls release.
func (e *Engine) claimToMove(databases []model.Database, key func(id string) string) (release func(), err error) {
	var held []func()
	release = func() {
		for _, one := range held {
			one()
		}
	}
	for _, db := range databases {
		one, err := e.Core.Claims.Take(key(db.ID), "an export of the appliance")
		if err != nil {
			release()
			return nil, err
		}
		held = append(held, one)
	}
	return release, nil
}

// toMove lists the databases except sandboxes: those in use and those in the
// trash.
func toMove(tx *meta.Tx) (kept, trashed []model.Database, err error) {
	err = tx.Databases().All(func(db model.Database) error {
		switch {
		case db.Sandbox:
		case db.Trash != nil:
			trashed = append(trashed, db)
		default:
			kept = append(kept, db)
		}
		return nil
	})
	return kept, trashed, err
}

// movable returns the databases after it has checked that each can be exported: it
// is available, or the appliance and its server are stopped.
func (e *Engine) movable() (kept, trashed []model.Database, err error) {
	err = e.Core.Meta.View(func(tx *meta.Tx) (err error) {
		kept, trashed, err = toMove(tx)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	for _, db := range kept {
		if e.Databases.Started() {
			if status, reason := e.Databases.LiveStatus(db); status != model.DatabaseAvailable {
				return nil, nil, model.Errorf(model.CodeConflict, "the database %s (%s) is %s %s: see to it, delete it, or stop the appliance and export then",
					db.Name, db.ID, status, reason)
			}
		} else if postgres.IsServed(e.Databases.DataDirectory(db.ID, db.Generation)) {
			return nil, nil, model.Errorf(model.CodeConflict, "the database %s (%s) still runs, of an appliance that was killed: start `holdfast serve`, and export while it runs or after it was stopped",
				db.Name, db.ID)
		}
	}
	return kept, trashed, nil
}

// backUpToMove makes a backup, after any running one, and returns its generation.
func (e *Engine) backUpToMove(ctx context.Context, call *model.Call, db model.Database) (generation int, err error) {
	for {
		own := e.Core.System(model.ActionBackupCreate, db.Organization, databases.DatabaseResource(db))
		own.Actor = call.Actor
		b, done, err := e.Recovery.BeginBackup(own, db, model.BackupManual)
		switch {
		case err == nil:
			select {
			case <-done:
			case <-ctx.Done():
				return 0, ctx.Err()
			}
			if b, err = e.Recovery.BackupGet(own, db.ID, b.ID); err == nil && b.Status != model.BackupCompleted {
				err = model.Errorf(model.CodeConflict, "the backup of %s has failed: %s", db.Name, b.Error)
			}
			return b.Generation, err
		case model.CodeOf(err) != model.CodeConflict:
			return 0, err
		}
		select {
		case <-time.After(databases.SandboxRetry):
		case <-ctx.Done():
			return 0, errors.Join(err, ctx.Err())
		}
	}
}

// linkToMove fills dir with a copy of the metadata and links to everything else. The caller has claimed the databases
// in the trash. If the databases in the metadata differ from the given ones, it returns errDatabasesChanged.
func (e *Engine) linkToMove(dir string, dbs, trashed []model.Database) error {
	if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)); err != nil {
		return err
	}
	release, err := e.claimToMove(dbs, databases.BackupClaim)
	if err != nil {
		return err
	}
	defer release()
	// First, because a collection of chunks may take long, and RemovalLock must not wait for it: the claims keep the
	// backups as they are.
	for _, db := range slices.Concat(dbs, trashed) {
		if err := e.linkRepository(dir, db); err != nil {
			return err
		}
	}
	e.Core.RemovalLock.Lock()
	defer e.Core.RemovalLock.Unlock()
	metadata := func(w io.Writer) error {
		return e.Core.Meta.SnapshotIf(w, func(tx *meta.Tx) error { return stillToMove(tx, dbs, trashed) })
	}
	if err := durable.WriteStream(filepath.Join(dir, core.MetadataFile), 0o600, metadata); err != nil {
		return err
	}
	if err := e.Core.Blobs.Link(filepath.Join(dir, objects.Directory)); err != nil {
		return err
	}
	for _, name := range []string{core.KeyFile, core.WebhookSecretFile, "tls"} {
		if err := e.linkTree(dir, name); err != nil {
			return err
		}
	}
	for _, db := range slices.Concat(dbs, trashed) {
		if err := e.linkWAL(dir, db); err != nil {
			return err
		}
	}
	cold := trashed
	if !e.Databases.Started() {
		cold = append(cold, dbs...)
	}
	for _, db := range cold {
		rel, err := filepath.Rel(e.Core.Config.DataDir, e.Databases.DataDirectory(db.ID, db.Generation))
		if err != nil {
			return err
		}
		// These files change in place, but not before the archive is written: only a
		// started server would change them.
		if err := e.linkTree(dir, rel); err != nil {
			return err
		}
	}
	return nil
}

// stillToMove returns errDatabasesChanged if the databases differ from the given ones. It ignores databases that are
// being created: the new appliance rolls these back.
func stillToMove(tx *meta.Tx, databases, trashed []model.Database) error {
	kept, deleted, err := toMove(tx)
	if err != nil {
		return err
	}
	same := func(a, b model.Database) bool { return a.ID == b.ID && a.Generation == b.Generation }
	if !slices.EqualFunc(made(kept), made(databases), same) || !slices.EqualFunc(deleted, trashed, same) {
		return errDatabasesChanged
	}
	return nil
}

// made returns the databases whose creation is complete.
func made(all []model.Database) []model.Database {
	return slices.DeleteFunc(slices.Clone(all), func(db model.Database) bool {
		return db.Status == model.DatabaseCreating || db.Status == model.DatabaseImporting
	})
}

// linkRepository links the repository of a database's backups. If it is not open, nothing collects its chunks.
func (e *Engine) linkRepository(dir string, db model.Database) error {
	name := filepath.Join("backups", db.ID, "repository")
	repo := e.Recovery.OpenedRepository(db.ID)
	if repo == nil {
		return e.linkTree(dir, name)
	}
	to := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	return repo.Link(to)
}

// linkWAL links a database's WAL, which is being received if the database runs.
func (e *Engine) linkWAL(dir string, db model.Database) error {
	name := filepath.Join("backups", db.ID, recovery.WALDirectory)
	if db.Trash != nil || !e.Databases.Started() {
		return e.linkTree(dir, name)
	}
	archive, err := e.Recovery.WALArchive(db.ID)
	if err != nil {
		return err
	}
	return archive.Link(filepath.Join(dir, name))
}

// linkTree links the files below name in the data directory into dir. name may be absent.
func (e *Engine) linkTree(dir, name string) error {
	to := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	err := durable.LinkTree(filepath.Join(e.Core.Config.DataDir, name), to)
	if errors.Is(err, fs.ErrNotExist) && core.Absent(e.Core.Config.DataDir, name) {
		return nil
	}
	return err
}
