package offsite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/engine/offsite/stream"
	"holdfast/engine/recovery"
	"holdfast/internal/objectstore"
)

const (
	// restoreInterval is between two trial restores from the store, restoreCheck between two checks
	// whether one is due.
	restoreInterval = 7 * 24 * time.Hour
	restoreCheck    = 10 * time.Minute
)

// Restored is the result of a trial restore of one database from the store alone.
type Restored struct {
	At       time.Time `json:"at"`
	Database string    `json:"database"` // its id
	Name     string    `json:"name"`
	Detail   string    `json:"detail,omitempty"` // what was checked
	Error    string    `json:"error,omitempty"`  // why it failed
}

// restoreWeekly restores one database on trial from the store alone every week, another one each time.
func (s *Service) restoreWeekly(ctx context.Context) {
	for wait(ctx, restoreCheck) {
		last := s.currentState().Restored
		if s.core.ReadOnly() != nil || last != nil && !core.IsPast(s.core.WallClock(), last.At, restoreInterval) {
			continue
		}
		if _, err := s.VerifyRestore(ctx); err != nil && ctx.Err() == nil && model.CodeOf(err) != model.CodeConflict {
			s.core.Log.Warn("restore a database from the off-site copy on trial", "error", err)
		}
	}
}

// VerifyRestore restores the next database on trial from the store alone, and records the
// result. One that cannot be tried, such as a new one that has no backup in the copy yet, is passed over. An error says that none
// could be tried.
func (s *Service) VerifyRestore(ctx context.Context) (Restored, error) {
	c, err := connect(ctx, s.location, objectstore.Options{})
	if err != nil {
		return Restored{}, err
	}
	defer func() { _ = c.close() }()
	all, err := s.toRestore()
	if err != nil {
		return Restored{}, err
	}
	var conflict error
	for _, db := range all {
		detail, err := s.restoreOnTrial(ctx, c, db)
		switch {
		case ctx.Err() != nil, isAboutStore(err) && !stream.Damaged(err), err != nil && core.IsDiskFull(err):
			return Restored{}, err
		case err != nil && model.CodeOf(err) == model.CodeConflict:
			conflict = cmp.Or(conflict, err)
		default:
			return s.restored(db, detail, err)
		}
	}
	return Restored{}, conflict
}

// restored records the result of a trial.
func (s *Service) restored(db model.Database, detail string, err error) (Restored, error) {
	result := Restored{At: s.core.Clock(), Database: db.ID, Name: db.Name, Detail: detail}
	if err != nil {
		result.Detail, result.Error = "", err.Error()
		s.core.Log.Error("a database could not be restored from the off-site copy", "database", db.ID, "error", err)
		s.core.Emit(model.Event{
			Type: model.EventOffsiteDamaged, Organization: db.Organization,
			Resource: model.Resource{Type: model.ResourceDatabase, ID: db.ID, Name: db.Name},
			Message:  fmt.Sprintf("The database %s could not be restored from the copy off-site when it was tried. The appliance's log says why.", db.Name),
		})
	}
	return result, s.setState(func(state *State) { state.Restored = &result })
}

// toRestore returns the databases in the order of their trials: first the one after the one that was restored last.
func (s *Service) toRestore() ([]model.Database, error) {
	all, err := s.databases.KeptDatabases()
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(db model.Database) bool { return db.Sandbox || db.Status != model.DatabaseAvailable })
	if len(all) == 0 {
		return nil, model.Errorf(model.CodeConflict, "there is no database to restore")
	}
	slices.SortFunc(all, func(a, b model.Database) int { return cmp.Compare(a.ID, b.ID) })
	if last := s.currentState().Restored; last != nil {
		if i := slices.IndexFunc(all, func(db model.Database) bool { return db.ID > last.Database }); i > 0 {
			all = slices.Concat(all[i:], all[:i])
		}
	}
	return all, nil
}

// restoreOnTrial brings the backups of a database back into a directory of their own and
// restores the newest there.
func (s *Service) restoreOnTrial(ctx context.Context, c *connection, db model.Database) (detail string, err error) {
	dir := filepath.Join(s.core.Config.DataDir, recovery.VerificationDirectory, "offsite")
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700)); err != nil {
		return "", fmt.Errorf("make a directory for a trial: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := s.bringBack(ctx, c, db.ID, dir); err != nil {
		return "", err
	}
	return s.backups.VerifyCopy(ctx, db, backupsOf(dir, db.ID))
}

// bringBack writes the backups of a database, as of the newest point, below a directory.
func (s *Service) bringBack(ctx context.Context, c *connection, database, dir string) error {
	h, err := c.repository.History(ctx)
	if err != nil {
		return err
	}
	point, err := h.FindLacking(ctx, time.Time{}, mayLack)
	if err != nil {
		return err
	}
	r := newDatabaseRestorer(c.repository, dir)
	for e, err := range c.repository.Catalog(ctx, point) {
		if err == nil && e.Owner == database && (e.Kind == KindRepository || e.Kind == KindWAL) {
			err = r.entry(ctx, e)
		}
		if err != nil {
			return err
		}
	}
	if host, err := core.MeasureHost(s.core.Config.DataDir); err == nil && host.DiskFree < 2*r.size(database) {
		return model.Errorf(model.CodeConflict, "the disk has too little space for a trial restore")
	}
	if err := r.finish(ctx); err != nil {
		return err
	}
	return fetchDatabase(ctx, c.repository, dir, database, func(int64, int64) {})
}
