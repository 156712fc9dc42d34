package api

import (
	"context"
	"time"

	"holdfast/engine/databases"
	"holdfast/engine/model"
	"holdfast/server/api/wire"
)

type updateDatabaseInput struct {
	DatabaseInput
	Body wire.UpdateDatabase
}

func (h *handlers) databaseUpdate(ctx context.Context, call *model.Call, in *updateDatabaseInput) (wire.Database, error) {
	change := databases.Change{
		Name: in.Body.Name, Project: in.Body.Project,
		BackupEvery:        units(in.Body.BackupEverySeconds, time.Second),
		BackupRetention:    units(in.Body.BackupRetentionDays, 24*time.Hour),
		ConnectionLimit:    units(in.Body.ConnectionLimit, 1),
		LogicalReplication: in.Body.LogicalReplication, DropSlots: in.Body.DropSlots != nil && *in.Body.DropSlots,
		SleepAfter: units(in.Body.SleepAfterSeconds, time.Second),
	}
	if at, given := in.Body.ExpiresAt.Value(); given {
		change.ExpiresAt = &at
	}
	if w, given := in.Body.MaintenanceWindow.Value(); given {
		change.MaintenanceWindow = new(model.MaintenanceWindow)
		if w != nil {
			window, err := model.NewMaintenanceWindow("maintenance_window", string(w.Day), w.Start, w.Minutes)
			if err != nil {
				return wire.Database{}, err
			}
			change.MaintenanceWindow = &window
		}
	}
	db, err := h.engine.Databases.Update(ctx, call, in.ID, change)
	call.ETag = db.Tag()
	return NewDatabase(db), err
}

// units returns a number of units, 0 for the default, nil if it is not to be changed.
func units[T ~int | ~int64](field wire.Resettable[wire.WholeNumber], unit T) *T {
	number, given := field.Value()
	if !given {
		return nil
	}
	if number == nil {
		return new(T)
	}
	return new(T(*number) * unit)
}
