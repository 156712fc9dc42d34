package meta

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"holdfast/engine/model"
)

// operationEvents returns the event of the start or the end of an operation.
func operationEvents(tx *Tx, before, after *model.DatabaseOperation) ([]model.Event, error) {
	if after == nil || before != nil && (before.Status.Final() || !after.Status.Final()) {
		return nil, nil
	}
	t, db := operationEvent(tx, *after), databaseOf(tx, after.Database)
	if t == "" || db.Sandbox {
		return nil, nil
	}
	e := model.Event{
		Type: t, Organization: after.Organization, Database: after.Database, Operation: after.ID,
		Resource: operationResource(tx, *after, db), Message: operationMessage(*after, operationSubject(tx, *after, db)),
	}
	if after.CompletedAt != nil {
		e.Took = after.CompletedAt.Sub(after.StartedAt)
	}
	events := []model.Event{e}
	if made := madeBy(tx, *after, db); made.ID != "" {
		events = append(events, databaseEvent(made, model.EventDatabaseCreated, "The database %s is available.", made.Name))
	}
	return events, nil
}

// operationEvent returns the type of the event, "" for operations whose start or end is none.
func operationEvent(tx *Tx, op model.DatabaseOperation) model.EventType {
	area := map[model.OperationType]string{
		model.OperationBackup: "backup", model.OperationRestore: "restore", model.OperationPITR: "restore",
		model.OperationBranch: "restore", model.OperationReset: "restore", model.OperationUpgrade: "upgrade",
		model.OperationImport: "import", model.OperationExport: "export",
	}[op.Type]
	switch {
	case op.Type == model.OperationRestart && op.Status == model.OperationCompleted:
		return model.EventDatabaseRestarted
	case op.Type == model.OperationRestart && op.Status == model.OperationFailed:
		return model.EventDatabaseRestartFailed
	case area == "":
		return ""
	case !op.Status.Final():
		return model.EventType(area + ".started")
	case op.Type == model.OperationBackup && op.Status == model.OperationFailed:
		return failedBackup(tx, op.Backup)
	default:
		return model.EventType(area + "." + string(op.Status))
	}
}

// failedBackup returns the event of a backup that failed, which another operation or a stop may have interrupted.
func failedBackup(tx *Tx, id string) model.EventType {
	if b, err := tx.Backups().Get(id); err == nil && b.Cut {
		return model.EventBackupInterrupted
	}
	return model.EventBackupFailed
}

// databaseOf returns the database that an event names. If there is none, or its record is
// damaged, only its id stands in place of its name: the change that the event is about does
// not depend on it.
func databaseOf(tx *Tx, id string) model.Database {
	db, err := tx.Databases().Get(id)
	if err != nil {
		return model.Database{Name: id}
	}
	return db
}

// operationResource returns what an operation is about.
func operationResource(tx *Tx, op model.DatabaseOperation, db model.Database) model.Resource {
	switch op.Type {
	case model.OperationBackup:
		return model.Resource{Type: model.ResourceBackup, ID: op.Backup, Name: db.Name}
	case model.OperationExport:
		return model.Resource{Type: model.ResourceExport, ID: op.Export, Name: db.Name}
	case model.OperationImport:
		if imports, _, err := tx.Imports().Newest(ByDatabase, Key(op.Database), "", 1); err == nil && len(imports) > 0 {
			return model.Resource{Type: model.ResourceImport, ID: imports[0].ID, Name: imports[0].Name}
		}
	}
	return model.Resource{Type: model.ResourceDatabase, ID: op.Database, Name: db.Name}
}

// operationSubject names what an operation is about in messages.
func operationSubject(tx *Tx, op model.DatabaseOperation, db model.Database) string {
	if x, err := tx.Exports().Get(op.Export); err == nil && x.DBName != "" {
		return fmt.Sprintf("the database %q beside %s", x.DBName, db.Name)
	}
	return db.Name
}

func operationMessage(op model.DatabaseOperation, subject string) string {
	what := map[model.OperationType]string{
		model.OperationBackup: "backup of", model.OperationRestore: "restore of", model.OperationPITR: "restore of",
		model.OperationBranch: "branch of", model.OperationReset: "reset of",
		model.OperationUpgrade: "upgrade of",
		model.OperationImport:  "import of", model.OperationExport: "export of", model.OperationRestart: "restart of",
	}[op.Type]
	switch {
	case !op.Status.Final():
		return fmt.Sprintf("The %s %s has started.", what, subject)
	case op.Status == model.OperationCompleted:
		return fmt.Sprintf("The %s %s is complete.", what, subject)
	case op.Status == model.OperationCancelled:
		return fmt.Sprintf("The %s %s was %s.", what, subject, op.Error)
	default:
		return fmt.Sprintf("The %s %s failed: %s", what, subject, op.Error)
	}
}

// madeBy returns the database that an operation has made, without an id if none.
func madeBy(tx *Tx, op model.DatabaseOperation, db model.Database) model.Database {
	switch {
	case op.Status != model.OperationCompleted:
		return model.Database{}
	case op.Type == model.OperationImport:
		return db
	}
	made, err := tx.Databases().Get(op.NewDatabase)
	if err != nil { // the operation has made none
		return model.Database{}
	}
	return made
}

func databaseEvent(db model.Database, t model.EventType, format string, args ...any) model.Event {
	return model.Event{
		Type: t, Organization: db.Organization, Database: db.ID,
		Resource: model.Resource{Type: model.ResourceDatabase, ID: db.ID, Name: db.Name}, Message: fmt.Sprintf(format, args...),
	}
}

// databaseEvents returns the events of a change of a database's record. Sandboxes have none.
func databaseEvents(_ *Tx, before, after *model.Database) ([]model.Event, error) {
	one := func(db *model.Database, t model.EventType, format string, args ...any) ([]model.Event, error) {
		return []model.Event{databaseEvent(*db, t, format, args...)}, nil
	}
	switch {
	case before == nil || before.Sandbox:
		return nil, nil
	case after == nil && before.Trash == nil: // a creation that failed
		return nil, nil
	case after == nil:
		return one(before, model.EventDatabasePurged, "The database %s was removed for good.", before.Name)
	case before.Trash == nil && after.Trash != nil:
		return one(after, model.EventDatabaseDeleted, "The database %s was deleted.", after.Name)
	case before.Trash != nil && after.Trash == nil:
		return one(after, model.EventDatabaseUndeleted, "The database %s was brought back from the trash.", after.Name)
	case before.Status == model.DatabaseCreating && after.Status == model.DatabaseAvailable && after.Operation == before.Operation && after.Operation == "":
		return one(after, model.EventDatabaseCreated, "The database %s is available.", after.Name)
	case string(before.OwnerPassword) != string(after.OwnerPassword):
		return one(after, model.EventDatabasePasswordRotated, "The password of the database %s was changed.", after.Name)
	}
	if what := changedSettings(*before, *after); what != "" {
		return one(after, model.EventDatabaseUpdated, "The %s of the database %s changed.", what, after.Name)
	}
	return nil, nil
}

// changedSettings names what a client can change in a database's record, "" if nothing did.
func changedSettings(before, after model.Database) string {
	switch {
	case before.Tag() != after.Tag():
		return "properties"
	case !slices.Equal(before.Allowlist, after.Allowlist):
		return "allow-list"
	case model.Tag(before.Roles) != model.Tag(after.Roles):
		return "roles"
	case !maps.Equal(before.Settings, after.Settings) || !maps.Equal(before.OwnSettings, after.OwnSettings) || !slices.Equal(before.Preload, after.Preload):
		return "settings"
	default:
		return ""
	}
}

// backupEvents returns the events of a verification and of a deletion. Those of a backup's start and end are its operation's.
func backupEvents(tx *Tx, before, after *model.Backup) ([]model.Event, error) {
	if before == nil || after == nil {
		return nil, nil
	}
	db := databaseOf(tx, after.Database)
	e := model.Event{
		Organization: after.Organization, Database: after.Database,
		Resource: model.Resource{Type: model.ResourceBackup, ID: after.ID, Name: db.Name},
	}
	now := after.Verification.Status
	switch {
	case !before.DeletionPending && after.DeletionPending:
		e.Type, e.Message = model.EventBackupDeleted, fmt.Sprintf("A backup of %s was deleted.", db.Name)
	case now == before.Verification.Status:
		return nil, nil
	case now == model.VerificationVerified:
		e.Type, e.Message = model.EventBackupVerified, fmt.Sprintf("A backup of %s was verified: %s", db.Name, after.Verification.Detail)
	case now == model.VerificationFailed:
		e.Type = model.EventVerificationFailed
		e.Message = fmt.Sprintf("A backup of %s could not be restored when it was tried: %s", db.Name, after.Verification.Detail)
	default:
		return nil, nil
	}
	return []model.Event{e}, nil
}

// keyEvents returns the event of a change of an API key, but not of its use.
func keyEvents(_ *Tx, before, after *model.Key) ([]model.Event, error) {
	if after == nil {
		return nil, nil
	}
	e := model.Event{Organization: after.Organization, Resource: model.Resource{Type: model.ResourceKey, ID: after.ID, Name: after.Name}}
	switch {
	case before == nil:
		e.Type, e.Message = model.EventKeyCreated, fmt.Sprintf("The API key %s was created.", after.Name)
	case before.RevokedAt == nil && after.RevokedAt != nil:
		e.Type, e.Message = model.EventKeyRevoked, fmt.Sprintf("The API key %s was revoked.", after.Name)
	case !before.ExpiryAudited && after.ExpiryAudited:
		e.Type, e.Message = model.EventKeyExpired, fmt.Sprintf("The API key %s has expired.", after.Name)
	case before.Name != after.Name || !sameTime(before.ExpiresAt, after.ExpiresAt) || before.AllowDangerous != after.AllowDangerous || before.Preset != after.Preset || !slices.Equal(before.Scopes, after.Scopes):
		e.Type, e.Message = model.EventKeyUpdated, fmt.Sprintf("The API key %s was changed.", after.Name)
	default:
		return nil, nil
	}
	return []model.Event{e}, nil
}

func sameTime(a, b *time.Time) bool { return a == b || a != nil && b != nil && a.Equal(*b) }
