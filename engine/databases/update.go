package databases

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
	"holdfast/engine/postgres/binaries"
	"holdfast/engine/postgres/extensions"
)

// Change holds the properties of a database to change. nil leaves one unchanged; the
// zero value restores the default.
type Change struct {
	Name, Project                *string
	BackupEvery, BackupRetention *time.Duration
	ConnectionLimit              *int
	MaintenanceWindow            *model.MaintenanceWindow
	// LogicalReplication is not changed together with anything else, because it
	// restarts the server. DropSlots lets it end although there are slots.
	LogicalReplication *bool
	DropSlots          bool
	ExpiresAt          **time.Time // of a branch
	SleepAfter         *time.Duration
}

// The limits of a database's own schedule.
const (
	MinBackupEvery     = 15 * time.Minute
	MaxBackupEvery     = 31 * 24 * time.Hour
	MaxBackupRetention = 3650 * 24 * time.Hour
)

const day = 24 * time.Hour

// Update changes a database. The name is also that of the database in PostgreSQL: a
// new one ends the tenants' sessions, and clients need another connection URL.
// Backups from before the change stay usable, because a restore renames what it
// restores. Keeping backups for a shorter time needs the permission to delete them.
func (s *Service) Update(ctx context.Context, call *model.Call, id string, change Change) (View, error) {
	if err := s.validate(change); err != nil {
		return View{}, err
	}
	if change.LogicalReplication != nil {
		return s.switchReplication(ctx, call, id, change)
	}
	db, release, err := s.claimToUpdate(call, id, change)
	if err != nil {
		return View{}, err
	}
	defer release()
	next, err := s.changed(call, db, change)
	if err != nil {
		return View{}, err
	}
	if next.SleepAfter != db.SleepAfter {
		next, err = s.updateSleep(ctx, call, db, next)
	} else if next.Name != db.Name || next.ConnectionLimit != db.ConnectionLimit {
		next, err = s.updateServer(ctx, call, db, next)
	} else {
		err = s.core.Change(call, func(tx *meta.Tx) error { return s.storeUpdate(tx, &next, nil) })
	}
	if err != nil {
		return View{}, err
	}
	return s.View(next)
}

func (s *Service) validate(c Change) error {
	if c.DropSlots && (c.LogicalReplication == nil || *c.LogicalReplication) {
		return model.Invalid("drop_slots", "goes with switching logical_replication off only")
	}
	if on := c.LogicalReplication; on != nil && c != (Change{LogicalReplication: on, DropSlots: c.DropSlots}) {
		return model.Invalid("logical_replication", "restarts the database and cannot be changed together with other properties: change it by itself")
	}
	if c.SleepAfter != nil {
		if c.Name != nil || c.ConnectionLimit != nil {
			return model.Invalid("sleep_after_seconds", "cannot be changed together with the name or the connection limit: change one after the other")
		}
		if err := validSleep(*c.SleepAfter); err != nil {
			return err
		}
	}
	if c.Name != nil {
		if err := model.ValidateDatabaseName("name", *c.Name); err != nil {
			return err
		}
	}
	if c.ExpiresAt != nil {
		if err := s.CheckExpiry("expires_at", *c.ExpiresAt); err != nil {
			return err
		}
	}
	if every := c.BackupEvery; every != nil && *every != 0 {
		if s.core.Config.BackupInterval <= 0 {
			return model.Errorf(model.CodeForbidden, "backup_every_seconds: the operator has turned scheduled backups off (--backup-interval 0)")
		}
		if *every < MinBackupEvery || *every > MaxBackupEvery {
			return model.Invalid("backup_every_seconds", "must be from %d to %d, or the default: the appliance's interval",
				int(MinBackupEvery.Seconds()), int(MaxBackupEvery.Seconds()))
		}
	}
	if keep := c.BackupRetention; keep != nil && *keep != 0 && (*keep < day || *keep > MaxBackupRetention) {
		return model.Invalid("backup_retention_days", "must be from 1 to %d, or the default: the appliance's retention", MaxBackupRetention/day)
	}
	return nil
}

// claimToUpdate claims a database. Its server must run if it has to follow the change.
func (s *Service) claimToUpdate(call *model.Call, id string, c Change) (model.Database, func(), error) {
	const what = "a change of its properties"
	if c.SleepAfter != nil {
		db, release, err := s.ClaimExclusively(call, id, what)
		if err == nil {
			release, err = refusePending(db, release)
		}
		return db, release, err
	}
	if c.Name != nil || c.ConnectionLimit != nil {
		return s.claimAvailable(call, id, what)
	}
	return s.claimUnchanging(call, id, what, func(model.Database) (model.DatabaseStatus, string) { return model.DatabaseAvailable, "" })
}

// changed checks a change of a claimed database and returns the changed record.
func (s *Service) changed(call *model.Call, db model.Database, c Change) (model.Database, error) {
	if db.Sandbox {
		return db, model.Errorf(model.CodeConflict, "%s is a sandbox, which lasts only as long as its command runs: it cannot be changed", db.Name)
	}
	if err := call.Match(db.Tag()); err != nil {
		return db, err
	}
	next := db
	if to := c.ExpiresAt; to != nil {
		if *to != nil && db.Parent == "" {
			return db, model.Errorf(model.CodeConflict, "expires_at: %s is not a branch, and only branches expire", db.Name)
		}
		call.Note("expires_at", fmt.Sprintf("%s → %s", orNever(db.ExpiresAt), orNever(*to)))
		next.ExpiresAt = *to
	}
	set(call, "name", &next.Name, c.Name)
	set(call, "project", &next.Project, c.Project)
	set(call, "backup_every", &next.BackupEvery, c.BackupEvery)
	set(call, "backup_retention", &next.BackupRetention, c.BackupRetention)
	set(call, "connection_limit", &next.ConnectionLimit, c.ConnectionLimit)
	set(call, "sleep_after", &next.SleepAfter, c.SleepAfter)
	set(call, "maintenance_window", &next.MaintenanceWindow, c.MaintenanceWindow)
	if most := s.maxSessions(db); c.ConnectionLimit != nil && (next.ConnectionLimit < 0 || most > 0 && next.ConnectionLimit > most) {
		return db, model.Invalid("connection_limit", "must be from 1 to %d, which is what the server has for the database's owner, or the default: all of them", most)
	}
	if err := s.permitSooner(call, db, next); err != nil {
		return db, err
	}
	return next, refuseRename(db, next)
}

// set changes a property and notes the change for the audit log.
func set[T comparable](call *model.Call, name string, property, to *T) {
	if to == nil || *to == *property {
		return
	}
	call.Note(name, fmt.Sprintf("%s → %s", orDefault(*property), orDefault(*to)))
	*property = *to
}

func orNever(at *time.Time) string {
	if at == nil {
		return "never"
	}
	return at.UTC().Format(time.RFC3339)
}

func orDefault[T comparable](value T) string {
	var zero T
	if value == zero {
		return "default"
	}
	return fmt.Sprint(value)
}

// permitSooner checks that the caller may delete what a change has removed sooner than so far.
func (s *Service) permitSooner(call *model.Call, db, next model.Database) error {
	var acts []model.Operation
	if s.keptShorter(db, next) {
		acts = append(acts, model.OperationFor(model.ActionBackupDelete))
	}
	if to := next.ExpiresAt; to != nil && (db.ExpiresAt == nil || to.Before(*db.ExpiresAt)) {
		acts = append(acts, model.OperationFor(model.ActionDatabaseDelete))
	}
	return core.Permit(call, acts)
}

// keptShorter reports whether a change has backups removed sooner.
func (s *Service) keptShorter(db, next model.Database) bool {
	before, after := s.BackupRetention(db), s.BackupRetention(next)
	return after > 0 && (before == 0 || after < before)
}

// BackupInterval returns the time between scheduled backups of a database, 0 for none.
func (s *Service) BackupInterval(db model.Database) time.Duration {
	if db.Sandbox || s.core.Config.BackupInterval <= 0 || db.BackupEvery == 0 {
		return s.core.Config.BackupInterval
	}
	return db.BackupEvery
}

// BackupRetention returns how long the backups of a database are kept, 0 for ever.
func (s *Service) BackupRetention(db model.Database) time.Duration {
	if db.BackupRetention == 0 {
		return s.core.BackupRetention()
	}
	return db.BackupRetention
}

// maxSessions returns how many sessions the server has for the database's owner, 0 if
// that is not known.
func (s *Service) maxSessions(db model.Database) int {
	settings := map[string]string{}
	if memory := machineMemory(s.core.Config.DataDir); memory > 0 {
		settings[connectionsSetting] = fitConnections(memory)
	}
	maps.Copy(settings, db.Settings)
	return postgres.Config{Settings: settings}.Sessions(binaries.Set{Major: db.Major})
}

// refuseRename refuses a new name while something is bound to the present one.
func refuseRename(db, next model.Database) error {
	if next.Name == db.Name {
		return nil
	}
	for _, name := range db.Preload {
		for _, value := range extensions.Find(name).Settings {
			if strings.Contains(value, "{database}") {
				return model.Errorf(model.CodeConflict, "name: the extension %s is bound to the database's present name: drop it, restart the database, and rename it then", name)
			}
		}
	}
	return nil
}

// refuseRead refuses a new name while an export reads the database under the present one. No export begins while the change
// is pending.
func refuseRead(tx *meta.Tx, next model.Database) error {
	db, err := tx.Databases().Get(next.ID)
	if err != nil || db.Name == next.Name {
		return err
	}
	all, err := core.AllUnder(tx.Operations(), db.ID)
	if slices.ContainsFunc(all, func(op model.DatabaseOperation) bool { return op.Type == model.OperationExport && !op.Status.Final() }) {
		return errBeingRead()
	}
	return err
}

func errBeingRead() error {
	return model.Errorf(model.CodeConflict, "name: an export reads the database under its present name: wait until it has ended, or cancel it")
}

// storeUpdate stores the changed properties of next, and sets next to the whole record.
func (s *Service) storeUpdate(tx *meta.Tx, next *model.Database, pending *model.PendingChange) error {
	if _, err := core.ProjectOf(tx, next.Organization, next.Project); err != nil {
		return err
	}
	if err := refuseRead(tx, *next); err != nil {
		return err
	}
	stored, err := tx.Databases().Update(next.ID, func(d *model.Database) error {
		copyProperties(d, *next)
		d.PendingChange, d.UpdatedAt = pending, s.core.Clock()
		return nil
	})
	if err != nil {
		return core.NameTaken(err, model.ResourceDatabase, next.Name)
	}
	*next = stored
	return nil
}

func copyProperties(to *model.Database, from model.Database) {
	to.Name, to.Project = from.Name, from.Project
	to.BackupEvery, to.BackupRetention = from.BackupEvery, from.BackupRetention
	to.ConnectionLimit, to.MaintenanceWindow, to.SleepAfter = from.ConnectionLimit, from.MaintenanceWindow, from.SleepAfter
	to.ExpiresAt = from.ExpiresAt
}

// updateServer records a change that the server must follow, and applies it. If the
// server does not follow, nothing is changed.
func (s *Service) updateServer(ctx context.Context, call *model.Call, db, next model.Database) (model.Database, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Timeouts.Start)
	defer cancel()
	if next.Name != db.Name {
		if err := s.refuseRenamePrepared(ctx, next); err != nil {
			return next, ServerFailed(err)
		}
	}
	var before model.Database
	copyProperties(&before, db)
	pending := &model.PendingChange{Entry: *s.core.Entry(call, nil), Settings: db.Settings, OwnSettings: db.OwnSettings, Before: &before}
	if err := s.core.Meta.Update(func(tx *meta.Tx) error { return s.storeUpdate(tx, &next, pending) }); err != nil {
		return next, core.ExplainDiskFull(err)
	}
	if err := s.applyUpdate(ctx, db, next); err != nil {
		undoErr := s.takeBack(ctx, db.ID, func(d *model.Database) { copyProperties(d, db) })
		if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == "55006" { // object_in_use
			err = errBeingRead()
		}
		return next, errors.Join(ServerFailed(err), undoErr)
	}
	return s.concludeChange(call, db.ID)
}

// refuseRenamePrepared refuses a new name while prepared transactions keep the server from following, before anything changes.
func (s *Service) refuseRenamePrepared(ctx context.Context, next model.Database) error {
	tenant, err := s.tenant(next)
	if err != nil {
		return err
	}
	return s.maintain(ctx, next.ID, tenant.RefuseRename)
}

// applyUpdate makes the server follow the record. Nobody can open a session under the
// old name once the rules have the new one, and the rename ends those that are open.
func (s *Service) applyUpdate(ctx context.Context, db, next model.Database) error {
	if next.Name != db.Name {
		if err := s.applyAccess(ctx, next); err != nil {
			return err
		}
	}
	return s.applyOrRestart(ctx, db.ID, s.provisioning(next))
}
