package databases

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
	"holdfast/engine/postgres/extensions"
)

// extensionTimeout bounds a change of a database's extensions: each of the scripts
// may wait for the disk.
const extensionTimeout = 5 * time.Minute

// ExtensionView is an extension of the catalogue, of the machine or of a database as
// a client sees it.
type ExtensionView struct {
	postgres.Extension
	// NeedsRestart means that the database is restarted before the extension is
	// created.
	NeedsRestart bool
	// Reason says why the appliance does not create or update it, "" if it does.
	Reason string
}

// ExtensionList returns the extensions that the catalogue, the machine or the
// database has, by name.
func (s *Service) ExtensionList(ctx context.Context, call *model.Call, id string) (all []ExtensionView, err error) {
	db, err := s.Database(call, id)
	if err != nil {
		return nil, err
	}
	err = s.awake(db, func() (err error) {
		all, err = s.extensions(ctx, db)
		return err
	})
	return all, err
}

func (s *Service) extensions(ctx context.Context, db model.Database) ([]ExtensionView, error) {
	var known []postgres.Extension
	err := s.inTenantDatabase(ctx, db, func(ctx context.Context, conn *pgx.Conn) (err error) {
		known, err = postgres.Extensions(ctx, conn)
		return err
	})
	if err != nil {
		return nil, ServerFailed(err)
	}
	for _, x := range extensions.Catalogue() {
		if !slices.ContainsFunc(known, func(k postgres.Extension) bool { return k.Name == x.Name }) {
			known = append(known, postgres.Extension{Extension: x})
		}
	}
	slices.SortFunc(known, func(a, b postgres.Extension) int { return strings.Compare(a.Name, b.Name) })
	views := make([]ExtensionView, len(known))
	for i, x := range known {
		views[i] = ExtensionView{Extension: x, NeedsRestart: x.Allowed() && x.Available != "" && !x.Loaded}
		if err := x.Refusal(db.Major); err != nil {
			views[i].Reason = model.PublicMessage(err)
		}
	}
	return views, nil
}

// ExtensionChange names an extension to create or update.
type ExtensionChange struct {
	Name string
	// Restart allows a restart of the database if the server must load a library.
	Restart bool
}

// ExtensionSet creates an extension with those that it requires, or updates it to
// the version that the machine has. A restart that it needs comes first, and only
// if the caller allows it.
func (s *Service) ExtensionSet(ctx context.Context, call *model.Call, id string, in ExtensionChange) (ExtensionView, error) {
	if err := validExtension(in.Name); err != nil {
		return ExtensionView{}, err
	}
	if err := s.core.ClaimIdempotencyKey(call); err != nil {
		return ExtensionView{}, err
	}
	db, release, err := s.claimAvailable(call, id, "a change of its extensions")
	if err != nil {
		return ExtensionView{}, err
	}
	defer release()
	call.Note("extension", in.Name)
	ctx = context.WithoutCancel(ctx)
	x, err := s.extension(ctx, db, in.Name)
	if err != nil {
		return x, err
	}
	if x.Reason != "" && x.Installed == "" {
		return x, x.Refusal(db.Major)
	}
	if err := wakesNobody(db, in.Name); err != nil {
		return x, err
	}
	before := db
	if x.NeedsRestart {
		if !in.Restart {
			return x, model.Errorf(model.CodeConflict, "restart: the server must load the library of %s at its start; "+
				"allow a restart of the database, which ends its sessions", in.Name)
		}
		releaseBackups, err := s.claimBackupsFor(call, id, "a restart") // the restart that undoes this one also disturbs a backup
		if err != nil {
			return x, err
		}
		defer releaseBackups()
		if db, err = s.preload(ctx, call, db, in.Name); err != nil {
			return x, err
		}
		call.Note("restarted", "true")
	}
	var done []string
	err = s.withExtensions(ctx, db, func(ctx context.Context, conn *pgx.Conn) (err error) {
		done, err = postgres.CreateExtension(ctx, conn, db.Major, in.Name, db.Owner)
		return err
	})
	if err != nil && x.NeedsRestart {
		return x, errors.Join(ServerFailed(err), s.unload(ctx, before))
	}
	if err != nil {
		return x, ServerFailed(err)
	}
	call.Note("changed", strings.Join(done, ", "))
	if err := s.core.Change(call, func(tx *meta.Tx) error {
		return tx.Databases().Change(db.ID, func(d *model.Database) {
			if x.Preload != "" && !slices.Contains(d.Preload, in.Name) {
				d.Preload = append(d.Preload, in.Name)
			}
		})
	}); err != nil {
		return x, err
	}
	return s.extension(ctx, db, in.Name)
}

// ExtensionDelete drops an extension that nothing in the database needs.
func (s *Service) ExtensionDelete(ctx context.Context, call *model.Call, id, name string) error {
	db, release, err := s.claimAvailable(call, id, "a change of its extensions")
	if err != nil {
		return err
	}
	defer release()
	call.Note("extension", name)
	err = s.withExtensions(context.WithoutCancel(ctx), db, func(ctx context.Context, conn *pgx.Conn) error {
		return postgres.DropExtension(ctx, conn, name)
	})
	// A creation that was interrupted after its restart leaves only the library.
	if err != nil && !(model.CodeOf(err) == model.CodeNotFound && slices.Contains(db.Preload, name)) {
		return ServerFailed(err)
	}
	return s.core.Change(call, func(tx *meta.Tx) error {
		// The library goes at the next restart.
		return tx.Databases().Change(db.ID, func(d *model.Database) {
			d.Preload = slices.DeleteFunc(d.Preload, func(other string) bool { return other == name })
		})
	})
}

func validExtension(name string) error {
	if name == "" || !utf8.ValidString(name) || strings.ContainsRune(name, 0) {
		return model.Invalid("name", "must be the name of an extension")
	}
	return nil
}

// extension returns one of extensions.
func (s *Service) extension(ctx context.Context, db model.Database, name string) (ExtensionView, error) {
	all, err := s.extensions(ctx, db)
	if err != nil {
		return ExtensionView{}, err
	}
	if i := slices.IndexFunc(all, func(x ExtensionView) bool { return x.Name == name }); i >= 0 {
		return all[i], nil
	}
	x := ExtensionView{Extension: postgres.Extension{Extension: extensions.Find(name)}}
	return x, x.Refusal(db.Major)
}

// withExtensions runs act like inTenantDatabase, for longer.
func (s *Service) withExtensions(ctx context.Context, db model.Database, act func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, extensionTimeout)
	defer cancel()
	conn, err := s.Instances.Connect(ctx, db.ID, db.Name)
	if err != nil {
		return fmt.Errorf("connect to database: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return act(ctx, conn)
}

// preload records that the server loads the library of an extension, and restarts it.
// If it does not start with the library, both are reverted, by the next start if the
// appliance dies meanwhile: the change is pending until the server has started. The
// caller holds the database's claim and that of its backups.
func (s *Service) preload(ctx context.Context, call *model.Call, db model.Database, name string) (model.Database, error) {
	next, err := s.beginChange(call, db.ID, func(d *model.Database) { d.Preload = append(slices.Clone(d.Preload), name) })
	if err != nil {
		return db, err
	}
	if err := s.applySettings(ctx, next); err != nil {
		return db, errors.Join(badLibrary(name, err), s.unload(ctx, db))
	}
	if next, err = s.endPreload(db.ID); err != nil {
		return db, errors.Join(core.ExplainDiskFull(err), s.unload(ctx, db))
	}
	return next, nil
}

// endPreload records that the server has started with the library.
func (s *Service) endPreload(id string) (model.Database, error) {
	return s.alter(id, func(d *model.Database) { d.PendingChange = nil })
}

// recoverPreload ends a creation that was interrupted before the server had started with the library, which it has now.
// The extension is not created; its library stays until the extension is deleted.
func (s *Service) recoverPreload(call *model.Call, id string) error {
	_, err := s.endPreload(id)
	if err == nil {
		s.core.Finish(call, core.ErrInterrupted)
		return nil
	}
	return s.endLate(err, id, func(tx *meta.Tx) error {
		if err := tx.Databases().Change(id, func(d *model.Database) { d.PendingChange = nil }); err != nil {
			return err
		}
		return s.core.Audit(tx, call, core.ErrInterrupted)
	})
}

// loadsLibrary reports whether a pending change is that of [Service.preload].
func loadsLibrary(call *model.Call) bool { return call.Operation.Action == model.ActionExtensionSet }

func badLibrary(extension string, err error) error {
	return &model.Error{Code: model.CodeConflict, Message: "PostgreSQL does not start with the library of " + extension + "; nothing was changed", Err: err}
}

// unload gives the server the libraries of db again, as it was before [Service.preload],
// with another restart.
func (s *Service) unload(ctx context.Context, db model.Database) error {
	before, err := s.revertChange(db.ID, func(d *model.Database) { d.Preload = db.Preload })
	if err != nil {
		return err
	}
	return s.applySettings(ctx, before)
}

// libraries returns what the database's server loads at its start, and adds the
// settings that its extensions need.
func libraries(db model.Database, settings map[string]string) (preload []string) {
	for _, name := range db.Preload {
		x := extensions.Find(name)
		preload = append(preload, x.Preload)
		for key, value := range x.Settings {
			if _, given := settings[key]; !given {
				settings[key] = strings.ReplaceAll(value, "{database}", db.Name)
			}
		}
	}
	return preload
}
