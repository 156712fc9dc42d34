package databases

import (
	"errors"

	"holdfast/engine/connstring"
	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// View is a database as a client sees it: its record and the current state of its
// instance.
type View struct {
	model.Database
	Host           string
	Statistics     *Statistics // nil until the instance was first sampled
	LatestBackup   *model.Backup
	Unprotected    bool          // a completed backup is expected and missing
	VerifiedBackup *model.Backup // the newest verified one
	RunningOp      *model.DatabaseOperation
	FailedRestore  *model.DatabaseOperation // the last restore, if it failed
	ConnectionMode connstring.SSLMode
	Asleep         bool // available, and its server starts when somebody connects
	// LeftOut are its settings that PostgreSQL of its major version does not know.
	LeftOut []string
}

// Filter selects databases. An empty field selects all.
type Filter struct {
	core.Filter
	Status model.DatabaseStatus // as clients see it
}

// List returns the databases of the call's organization that match the filter.
func (s *Service) List(call *model.Call, filter Filter, page core.Page) (core.List[View], error) {
	list, err := s.list(call, filter, page)
	if err != nil {
		return core.List[View]{}, err
	}
	return s.views(list)
}

func (s *Service) views(list core.List[model.Database]) (core.List[View], error) {
	views := core.List[View]{Items: make([]View, 0, len(list.Items)), Next: list.Next}
	for _, db := range list.Items {
		view, err := s.View(db)
		if err != nil {
			return views, err
		}
		views.Items = append(views.Items, view)
	}
	return views, nil
}

func (s *Service) list(call *model.Call, filter Filter, page core.Page) (core.List[model.Database], error) {
	selection := core.Select(filter, func(db model.Database) bool {
		if !filter.Admits(db.Project, db.Name, db.CreatedAt) {
			return false
		}
		status, _ := s.LiveStatus(db)
		return core.Equals(filter.Status, status)
	})
	if filter.Name != "" {
		return core.ListNamed(s.core, s.core.Meta.View, call, model.ActionDatabaseList, (*meta.Tx).Databases, page,
			filter.Name, func(d model.Database) string { return d.ID }, selection)
	}
	return core.ListRecords(s.core, s.core.Meta.View, call, model.ActionDatabaseList, (*meta.Tx).Databases, page, selection)
}

// Get returns one database.
func (s *Service) Get(call *model.Call, id string) (View, error) {
	db, err := s.Database(call, id)
	if err != nil {
		return View{}, err
	}
	return s.View(db)
}

// Database returns the record of a database of the call's organization and makes
// it the call's resource.
func (s *Service) Database(call *model.Call, id string) (model.Database, error) {
	call.Resource = model.Resource{Type: model.ResourceDatabase, ID: id}
	db, err := meta.Value(s.core.Meta.View, func(tx *meta.Tx) (model.Database, error) { return DatabaseOf(tx, call.Organization, id) })
	if err == nil {
		call.Resource = DatabaseResource(db)
	}
	return db, err
}

// ID resolves the id or the name of a database of the call's organization. A name
// must be unique among its projects.
func (s *Service) ID(call *model.Call, idOrName string) (string, error) {
	if model.ResourceDatabase.HasPrefix(idOrName) {
		return idOrName, nil
	}
	named, err := s.databasesWhere(func(db model.Database) bool {
		return db.Trash == nil && db.Organization == call.Organization && db.Name == idOrName
	})
	switch {
	case err != nil:
		return "", err
	case len(named) == 0:
		return "", model.NotFound(model.ResourceDatabase, idOrName)
	case len(named) == 1:
		return named[0].ID, nil
	default:
		return "", model.Errorf(model.CodeConflict, "several projects have a database named %q; give its id", idOrName)
	}
}

// DatabaseOf returns the record of an organization's database that is not in the
// trash.
func DatabaseOf(tx *meta.Tx, organization, id string) (model.Database, error) {
	db, err := tx.Databases().Get(id)
	if errors.Is(err, meta.ErrNotFound) || err == nil && (db.Organization != organization || db.Trash != nil) {
		return model.Database{}, model.NotFound(model.ResourceDatabase, id)
	}
	return db, err
}

// DatabaseResource returns a database as the resource of a call.
func DatabaseResource(db model.Database) model.Resource {
	return model.Resource{Type: model.ResourceDatabase, ID: db.ID, Name: db.Name}
}

// View adds to a record its statistics, backups and operations.
func (s *Service) View(db model.Database) (View, error) {
	view := View{Database: db, Host: s.core.Config.PublicHost, ConnectionMode: connstring.Mode(s.core.Config.PublicHost)}
	if stats, ok := s.Statistics.Get(db.ID); ok {
		view.Statistics = &stats
	}
	view.Status, view.StatusReason = s.LiveStatus(db)
	if s.Started() && len(db.Settings)+len(db.OwnSettings) > 0 {
		if bin, ok := s.Majors.known(db.Major); ok {
			view.LeftOut = s.unknownSettings(bin, db)
		}
	}
	view.Asleep = view.Status == model.DatabaseAvailable && s.IsAsleep(db.ID)
	err := s.core.Meta.View(func(tx *meta.Tx) error {
		if db.Operation != "" {
			op, err := tx.Operations().Get(db.Operation)
			if err != nil {
				return err
			}
			op.Progress = s.Progress.Get(op.ID, op.Progress)
			s.imports.Operation(&op)
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
		if view.LatestBackup, err = NewestCompleted(tx, db.ID); err != nil {
			return err
		}
		view.Unprotected = IsUnprotected(db, view.LatestBackup)
		verified, _, err := tx.Backups().Newest(meta.ByVerification, meta.Key(db.ID, string(model.VerificationVerified)), "", 1)
		if len(verified) == 1 {
			view.VerifiedBackup = &verified[0]
		}
		return err
	})
	return view, err
}

// LiveStatus returns the recorded status and its reason, or those of the instance
// if the record says available and the instance is not.
func (s *Service) LiveStatus(db model.Database) (model.DatabaseStatus, string) {
	if s.core.Claims.Holds(db.ID, core.Unrecovered) {
		return model.DatabaseFailed, s.States.get(db.ID).reason
	}
	if db.Status != model.DatabaseAvailable {
		return db.Status, db.StatusReason
	}
	switch live := s.States.get(db.ID); live.state {
	case postgres.StateRunning:
		if s.core.Claims.Holds(db.ID, startClaim) || s.States.rolesPending(db.ID) { // its roles are still being set
			return model.DatabaseUnavailable, starting
		}
		return model.DatabaseAvailable, ""
	case postgres.StateAsleep:
		return model.DatabaseAvailable, ""
	case postgres.StateFailed:
		return model.DatabaseFailed, live.reason
	case postgres.StateDown:
		return model.DatabaseUnavailable, live.reason
	default:
		return model.DatabaseUnavailable, starting
	}
}

// starting is the reason given while an instance is being started.
const starting = "PostgreSQL is being started"

// NewestCompleted returns the newest completed backup of a database, nil when
// there is none.
func NewestCompleted(tx *meta.Tx, database string) (*model.Backup, error) {
	after := ""
	for limit := 1; ; limit = core.MaxLimit { // the newest backup usually is
		backups, more, err := tx.Backups().Newest(meta.ByDatabase, meta.Key(database), after, limit)
		if err != nil {
			return nil, err
		}
		for _, b := range backups {
			if b.Status == model.BackupCompleted && !b.DeletionPending {
				return &b, nil
			}
			after = b.ID
		}
		if !more {
			return nil, nil
		}
	}
}

// IsUnprotected reports whether a database lacks the completed backup it should
// have. A sandbox needs none, a branch has the first one when it is a backup's interval old,
// and a database that is being created, imported or deleted cannot have one.
func IsUnprotected(db model.Database, newest *model.Backup) bool {
	switch db.Status {
	case model.DatabaseCreating, model.DatabaseImporting, model.DatabaseDeleting:
		return false
	default:
		return newest == nil && !db.Sandbox && db.Parent == ""
	}
}

// KeptDatabases returns the databases that are not in the trash.
func (s *Service) KeptDatabases() ([]model.Database, error) {
	return s.databasesWhere(func(db model.Database) bool { return db.Trash == nil })
}

func (s *Service) databasesWhere(matches func(model.Database) bool) ([]model.Database, error) {
	return meta.Value(s.core.Meta.View, func(tx *meta.Tx) ([]model.Database, error) { return tx.Databases().Where(matches) })
}

// Record returns the current record of a database.
func (s *Service) Record(id string) (model.Database, error) {
	return meta.Value(s.core.Meta.View, func(tx *meta.Tx) (model.Database, error) { return tx.Databases().Get(id) })
}
