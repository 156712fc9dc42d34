package api

import (
	"context"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/model"
	"holdfast/server/api/wire"
)

type databaseListInput struct {
	PageInput
	FilterInput
	Status wire.DatabaseStatus `query:"status" doc:"Only those with this status."`
}

func (h *handlers) databaseList(_ context.Context, call *model.Call, in *databaseListInput) (core.List[wire.Database], error) {
	filter := databases.Filter{Filter: in.filter(), Status: model.DatabaseStatus(in.Status)}
	page, err := h.engine.Databases.List(call, filter, in.page())
	return convertList(page, NewDatabase), err
}

type createDatabaseInput struct {
	Body wire.CreateDatabase
}

func (h *handlers) databaseCreate(ctx context.Context, call *model.Call, in *createDatabaseInput) (wire.CreatedDatabase, error) {
	var sleepAfter time.Duration
	if after := in.Body.SleepAfterSeconds; after != nil {
		sleepAfter = time.Duration(*after) * time.Second
	}
	db, connection, err := h.engine.Databases.Create(ctx, call, databases.NewDatabase{
		Project: in.Body.Project, Name: in.Body.Name,
		User: text(in.Body.DBUser), Password: model.NewSecret(text(in.Body.Password)), Version: text(in.Body.Version), SleepAfter: sleepAfter,
		LogicalReplication: in.Body.LogicalReplication != nil && *in.Body.LogicalReplication,
	})
	if err != nil {
		return wire.CreatedDatabase{}, err
	}
	call.ETag = db.Tag()
	return wire.CreatedDatabase{Database: NewDatabase(db), Credentials: NewCredentials(connection)}, nil
}

func (h *handlers) databaseGet(_ context.Context, call *model.Call, in *DatabaseInput) (wire.Database, error) {
	db, err := h.engine.Databases.Get(call, in.ID)
	call.ETag = db.Tag()
	return NewDatabase(db), err
}

func (h *handlers) recoverable(until time.Time) (r wire.Recoverable) {
	if until.After(h.now()) {
		r.RecoverableUntil = utcOrAbsent(&until)
	}
	return r
}

func (h *handlers) databaseDelete(ctx context.Context, call *model.Call, in *DatabaseInput) (wire.DeletedResource, error) {
	until, err := h.engine.Databases.Delete(ctx, call, in.ID)
	return wire.DeletedResource{ID: in.ID, Deleted: true, Recoverable: h.recoverable(until)}, err
}

func (h *handlers) databaseRestart(ctx context.Context, call *model.Call, in *databaseActInput) (wire.Database, error) {
	db, err := h.engine.Databases.Restart(ctx, call, in.ID)
	return NewDatabase(db), err
}

type rotateInput struct {
	DatabaseInput
	Body *wire.RotatePassword
}

func (h *handlers) databaseRotatePassword(ctx context.Context, call *model.Call, in *rotateInput) (wire.RotatedConnection, error) {
	terminate := in.Body != nil && in.Body.TerminateSessions != nil && *in.Body.TerminateSessions
	rotation, err := h.engine.Databases.RotatePassword(ctx, call, in.ID, terminate)
	if err != nil {
		return wire.RotatedConnection{}, err
	}
	return wire.RotatedConnection{
		Connection: NewConnection(rotation.Connection, databases.DefaultCAFile),
		RotatedAt:  utc(rotation.RotatedAt), SessionsTerminated: rotation.SessionsTerminated,
	}, nil
}

type connectionInput struct {
	DatabaseInput
	CAFile string `query:"ca_file" minLength:"1" maxLength:"1024" pattern:"^[^\\x00-\\x1f\\x7f-\\x9f]*$" patternDescription:"a path without control characters" default:"holdfast-ca.crt" example:"/etc/app/holdfast-ca.crt" doc:"The file in which the client keeps ca_certificate. The strings of drivers name it; a relative path starts at the client's working directory."`
}

func (h *handlers) databaseConnection(_ context.Context, call *model.Call, in *connectionInput) (wire.Connection, error) {
	if !utf8.ValidString(in.CAFile) || strings.ContainsFunc(in.CAFile, unicode.IsControl) {
		return wire.Connection{}, model.Invalid("ca_file", "must be a path without control characters")
	}
	connection, err := h.engine.Databases.Connection(call, in.ID)
	if err != nil {
		return wire.Connection{}, err
	}
	return NewConnection(connection, in.CAFile), nil
}
