package databases

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

// ChangeSettings changes a database's own PostgreSQL settings and restarts it with
// them; an empty value restores the default computed for the machine. If the
// instance does not start with the new settings, they are reverted. Only a start
// can validate them, so settings cannot be changed while the appliance is stopped.
func (s *Service) ChangeSettings(ctx context.Context, call *model.Call, id string, change map[string]string) (model.Database, error) {
	for name := range change {
		if err := model.ValidateSetting(name); err != nil {
			return model.Database{}, err
		}
	}
	if !s.Started() {
		return model.Database{}, model.Errorf(model.CodeConflict, "settings are tried by a start of PostgreSQL, and the appliance does not run: start it first")
	}
	db, release, err := s.ClaimExclusively(call, id, "a change of settings")
	if err == nil {
		release, err = refusePending(db, release)
	}
	if err != nil {
		return db, err
	}
	defer release()
	bin, err := s.Majors.Find(ctx, db.Major)
	if err == nil {
		err = s.refuseUnknown(bin, change)
	}
	if err != nil {
		return db, err
	}
	call.Note("settings", strings.Join(slices.Sorted(maps.Keys(change)), ","))
	before := db.Settings
	next, err := s.beginChange(call, id, func(d *model.Database) {
		d.Settings, d.UpdatedAt = mergeSettings(before, change), s.core.Clock()
	})
	if err != nil {
		return db, err
	}
	ctx = context.WithoutCancel(ctx)
	if err := s.applySettings(ctx, next); err != nil {
		db, undoErr := s.revertChange(id, func(d *model.Database) { d.Settings = before })
		if undoErr == nil {
			undoErr = s.applySettings(ctx, db)
		}
		return db, errors.Join(badSettings(err), undoErr)
	}
	return s.concludeChange(call, id)
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

// applySettings restarts the instance with the record's settings. It sets its own
// deadline, because it also reverts settings after a failure.
func (s *Service) applySettings(ctx context.Context, db model.Database) error {
	ctx, cancel := context.WithTimeout(ctx, s.Timeouts.Stop+s.Timeouts.Start)
	defer cancel()
	err := s.reconfigure(ctx, db, func(*postgres.Spec) {})
	if errors.Is(err, postgres.ErrUnknownInstance) {
		return s.StartDatabase(ctx, db)
	}
	if err != nil {
		return fmt.Errorf("restart with new settings: %w", err)
	}
	s.setRolesOrRetryLater(ctx, db) // the connection limits follow the settings
	return nil
}

// reconfigure restarts the instance with the settings and libraries of the record, and with change, which is called once
// it has stopped. The error wraps postgres.ErrUnknownInstance if it is not supervised.
func (s *Service) reconfigure(ctx context.Context, db model.Database, change func(*postgres.Spec)) error {
	spec, err := s.Spec(ctx, db)
	if err != nil {
		return err
	}
	return s.Instances.Reconfigure(ctx, db.ID, s.Timeouts.Stop, func(it *postgres.Spec) {
		it.Config.Settings, it.Config.Preload = spec.Config.Settings, spec.Config.Preload
		change(it)
	})
}
