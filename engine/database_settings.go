package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// DatabaseSettings gives a database PostgreSQL settings of its own and
// restarts it with them; an empty value goes back to what is fitted to the
// machine. Settings with which the instance does not start are taken back:
// only a start tells, so there are none while the appliance does not run.
func (e *Engine) DatabaseSettings(ctx context.Context, call *model.Call, id string, change map[string]string) (model.Database, error) {
	for name := range change {
		if err := model.ValidateSetting(name); err != nil {
			return model.Database{}, err
		}
	}
	if !e.Started() {
		return model.Database{}, model.Errorf(model.CodeConflict, "settings are tried by a start of PostgreSQL, and the appliance does not run: start it first")
	}
	db, release, err := e.claimWhole(call, id, "a change of settings")
	if err != nil {
		return db, err
	}
	defer release()
	call.Note("settings", strings.Join(slices.Sorted(maps.Keys(change)), ","))
	before := db.Settings
	next, err := e.beginChange(call, id, func(d *model.Database) {
		d.Settings, d.UpdatedAt = mergeSettings(before, change), e.clock()
	})
	if err != nil {
		return db, err
	}
	ctx = context.WithoutCancel(ctx)
	if err := e.applySettings(ctx, next); err != nil {
		db, undoErr := e.takeBack(id, func(d *model.Database) { d.Settings = before })
		undoErr = errors.Join(undoErr, e.applySettings(ctx, db))
		return db, errors.Join(badSettings(err), undoErr)
	}
	return e.endChange(call, id)
}

func badSettings(err error) error {
	return &model.Error{Code: model.CodeValidation, Message: "setting: PostgreSQL does not start with that; nothing was changed", Err: err}
}

func mergeSettings(old, change map[string]string) map[string]string {
	merged := maps.Clone(old)
	if merged == nil {
		merged = map[string]string{}
	}
	for name, value := range change {
		if value == "" {
			delete(merged, name)
		} else {
			merged[name] = value
		}
	}
	return merged
}

// applySettings restarts the instance with the record's settings. It has a
// time of its own: it is also what takes settings back.
func (e *Engine) applySettings(ctx context.Context, db model.Database) error {
	ctx, cancel := context.WithTimeout(ctx, e.waits.stop+startTimeout)
	defer cancel()
	spec, err := e.spec(ctx, db)
	if err != nil {
		return err
	}
	err = e.instances.Reconfigure(ctx, db.ID, e.waits.stop, func(s *postgres.Spec) { s.Config.Settings = spec.Config.Settings })
	if errors.Is(err, postgres.ErrUnknownInstance) {
		return e.startDatabase(ctx, db)
	}
	if err != nil {
		return fmt.Errorf("restart with new settings: %w", err)
	}
	e.setRolesOrLater(ctx, db) // the connection limits follow the settings
	return nil
}
