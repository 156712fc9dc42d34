package engine

import (
	"errors"

	"holdfast/engine/connstring"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// DatabaseView is a database as a client sees it: its record, and what its
// instance is doing now.
type DatabaseView struct {
	model.Database
	Host           string
	Statistics     *Statistics // nil until the instance was first asked
	LatestBackup   *model.Backup
	Unprotected    bool          // there is to be a completed backup, and is none
	ProvenBackup   *model.Backup // the newest that was restored on trial
	RunningOp      *model.DatabaseOperation
	FailedRestore  *model.DatabaseOperation // the last restore, where it failed
	ConnectionMode connstring.SSLMode
}

// DatabaseList returns the databases of the call's organization.
func (e *Engine) DatabaseList(call *model.Call, page Page) (List[DatabaseView], error) {
	list, err := listRecords(e, e.meta.View, call, model.ActionDatabaseList, (*meta.Tx).Databases, page,
		func(d model.Database) string { return d.ID })
	if err != nil {
		return List[DatabaseView]{}, err
	}
	views := List[DatabaseView]{Items: make([]DatabaseView, 0, len(list.Items)), Next: list.Next}
	for _, db := range list.Items {
		view, err := e.view(db)
		if err != nil {
			return views, err
		}
		views.Items = append(views.Items, view)
	}
	return views, nil
}

// DatabaseGet returns one database.
func (e *Engine) DatabaseGet(call *model.Call, id string) (DatabaseView, error) {
	db, err := e.database(call, id)
	if err != nil {
		return DatabaseView{}, err
	}
	return e.view(db)
}

// database returns the record of a database of the call's organization and
// makes it the call's resource.
func (e *Engine) database(call *model.Call, id string) (model.Database, error) {
	var db model.Database
	call.Resource = model.Resource{Type: model.ResourceDatabase, ID: id}
	err := e.meta.View(func(tx *meta.Tx) (err error) {
		db, err = databaseOf(tx, call.Organization, id)
		return err
	})
	if err == nil {
		call.Resource = databaseResource(db)
	}
	return db, err
}

// DatabaseID returns the id of the call's organization's database with the id
// or, where only one has it, the name given.
func (e *Engine) DatabaseID(call *model.Call, idOrName string) (string, error) {
	if model.ResourceDatabase.HasPrefix(idOrName) {
		return idOrName, nil
	}
	databases, err := e.keptDatabases()
	if err != nil {
		return "", err
	}
	var ids []string
	for _, db := range databases {
		if db.Organization == call.Organization && db.Name == idOrName {
			ids = append(ids, db.ID)
		}
	}
	switch len(ids) {
	case 0:
		return "", model.NotFound(model.ResourceDatabase, idOrName)
	case 1:
		return ids[0], nil
	default:
		return "", model.Errorf(model.CodeConflict, "several projects have a database named %q; give its id", idOrName)
	}
}

func databaseOf(tx *meta.Tx, organization, id string) (model.Database, error) {
	db, err := tx.Databases().Get(id)
	if errors.Is(err, meta.ErrNotFound) || err == nil && (db.Organization != organization || db.Trash != nil) {
		return model.Database{}, model.NotFound(model.ResourceDatabase, id)
	}
	return db, err
}

func databaseResource(db model.Database) model.Resource {
	return model.Resource{Type: model.ResourceDatabase, ID: db.ID, Name: db.Name}
}

// view adds to a record what lies beside it.
func (e *Engine) view(db model.Database) (DatabaseView, error) {
	view := DatabaseView{Database: db, Host: e.cfg.PublicHost, ConnectionMode: connstring.Mode(e.cfg.PublicHost)}
	if stats, ok := e.stats.get(db.ID); ok {
		view.Statistics = &stats
	}
	view.Status, view.StatusReason = e.liveStatus(db)
	err := e.meta.View(func(tx *meta.Tx) error {
		if db.Operation != "" {
			op, err := tx.Operations().Get(db.Operation)
			if err != nil {
				return err
			}
			op.Progress = e.done.get(op.ID, op.Progress)
			e.running.Operation(&op)
			view.RunningOp = &op
		}
		if db.LastRestore != "" {
			op, err := tx.Operations().Get(db.LastRestore)
			if err != nil {
				return err
			}
			if op.Status == model.OperationFailed {
				view.FailedRestore = &op
			}
		}
		var err error
		if view.LatestBackup, err = newestCompleted(tx, db.ID); err != nil {
			return err
		}
		view.Unprotected = isUnprotected(db, view.LatestBackup)
		proven, _, err := tx.Backups().Newest(meta.ByVerification, meta.Key(db.ID, string(model.VerificationVerified)), "", 1)
		if len(proven) == 1 {
			view.ProvenBackup = &proven[0]
		}
		return err
	})
	return view, err
}

// liveStatus is the recorded status, unless the record says available and the
// instance is not.
func (e *Engine) liveStatus(db model.Database) (model.DatabaseStatus, string) {
	if e.claims.holds(db.ID, unsettled) {
		return model.DatabaseFailed, e.states.get(db.ID).reason
	}
	if db.Status != model.DatabaseAvailable {
		return db.Status, db.StatusReason
	}
	switch live := e.states.get(db.ID); live.state {
	case postgres.StateRunning:
		if e.claims.holds(db.ID, startClaim) || e.states.isLate(db.ID) { // its roles are still being seen to
			return model.DatabaseUnavailable, starting
		}
		return model.DatabaseAvailable, ""
	case postgres.StateFailed:
		return model.DatabaseFailed, live.reason
	case postgres.StateDown:
		return model.DatabaseUnavailable, live.reason
	default:
		return model.DatabaseUnavailable, starting
	}
}

// starting is the reason given while an instance comes up.
const starting = "PostgreSQL is being started"

// newestCompleted returns the newest completed backup of a database, nil when
// there is none.
func newestCompleted(tx *meta.Tx, database string) (*model.Backup, error) {
	after := ""
	for limit := 1; ; limit = MaxLimit { // mostly the newest of all is
		backups, more, err := tx.Backups().Newest(meta.ByDatabase, meta.Key(database), after, limit)
		if err != nil {
			return nil, err
		}
		for _, b := range backups {
			if b.Status == model.BackupCompleted && !b.Condemned {
				return &b, nil
			}
			after = b.ID
		}
		if !more {
			return nil, nil
		}
	}
}
