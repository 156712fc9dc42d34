package api

import (
	"context"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/model"
)

func (h *handlers) databaseList(_ context.Context, call *model.Call, in *PageInput) (core.List[Database], error) {
	page, err := h.engine.Databases.List(call, in.page())
	return convertList(page, NewDatabase), err
}

// CreateDatabase is what a database is made of.
type CreateDatabase struct {
	Project  string  `json:"project" maxLength:"64" doc:"Id of the project."`
	Name     string  `json:"name" doc:"Begins with a letter; at most 63 letters, digits, underscores and hyphens. Unique in its project."`
	DBUser   *string `json:"db_user" required:"false" minLength:"1" doc:"The role that will own it; app when left out."`
	Password *string `json:"password" required:"false" minLength:"12" maxLength:"128" format:"password" doc:"Printable characters, and not easy to guess; generated when left out."`
}

// TransformSchema implements huma.SchemaTransformer.
func (CreateDatabase) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	describe(s, "name", databaseName)
	describe(s, "db_user", databaseUser)
	return s
}

type createDatabaseInput struct {
	Body CreateDatabase
}

func (h *handlers) databaseCreate(ctx context.Context, call *model.Call, in *createDatabaseInput) (CreatedDatabase, error) {
	db, connection, err := h.engine.Databases.Create(ctx, call, databases.NewDatabase{
		Project: in.Body.Project, Name: in.Body.Name,
		User: text(in.Body.DBUser), Password: model.NewSecret(text(in.Body.Password)),
	})
	if err != nil {
		return CreatedDatabase{}, err
	}
	return CreatedDatabase{Database: NewDatabase(db), Credentials: NewCredentials(connection)}, nil
}

func (h *handlers) databaseGet(_ context.Context, call *model.Call, in *DatabaseInput) (Database, error) {
	db, err := h.engine.Databases.Get(call, in.ID)
	return NewDatabase(db), err
}

// Recoverable says until when something that was deleted can come back.
type Recoverable struct {
	RecoverableUntil *time.Time `json:"recoverable_until" doc:"Until when the operator can bring it back; null when it is gone for good."`
}

func (h *handlers) recoverable(until time.Time) (r Recoverable) {
	if until.After(h.now()) {
		r.RecoverableUntil = utcOrAbsent(&until)
	}
	return r
}

// DeletedResource says what became of a deleted database or bucket.
type DeletedResource struct {
	ID      string `json:"id"`
	Deleted bool   `json:"deleted"`
	Recoverable
}

func (h *handlers) databaseDelete(ctx context.Context, call *model.Call, in *DatabaseInput) (DeletedResource, error) {
	until, err := h.engine.Databases.Delete(ctx, call, in.ID)
	return DeletedResource{ID: in.ID, Deleted: true, Recoverable: h.recoverable(until)}, err
}

type restartInput struct {
	DatabaseInput
	Body *NoFields
}

func (h *handlers) databaseRestart(ctx context.Context, call *model.Call, in *restartInput) (Database, error) {
	db, err := h.engine.Databases.Restart(ctx, call, in.ID)
	return NewDatabase(db), err
}

// RotatePassword is how a password is rotated.
type RotatePassword struct {
	TerminateSessions *bool `json:"terminate_sessions" required:"false" doc:"Whether to end the open sessions; false when left out."`
}

type rotateInput struct {
	DatabaseInput
	Body *RotatePassword
}

func (h *handlers) databaseRotatePassword(ctx context.Context, call *model.Call, in *rotateInput) (RotatedConnection, error) {
	terminate := in.Body != nil && in.Body.TerminateSessions != nil && *in.Body.TerminateSessions
	rotation, err := h.engine.Databases.RotatePassword(ctx, call, in.ID, terminate)
	if err != nil {
		return RotatedConnection{}, err
	}
	return RotatedConnection{
		Connection: NewConnection(rotation.Connection, databases.DefaultCAFile),
		RotatedAt:  utc(rotation.RotatedAt), SessionsTerminated: rotation.SessionsTerminated,
	}, nil
}

type connectionInput struct {
	DatabaseInput
	CAFile string `query:"ca_file" minLength:"1" maxLength:"1024" pattern:"^[^\\x00-\\x1f\\x7f-\\x9f]*$" patternDescription:"a path without control characters" default:"holdfast-ca.crt" example:"/etc/app/holdfast-ca.crt" doc:"The file in which the client keeps ca_certificate. The strings of drivers name it; a relative path starts at the client's working directory."`
}

func (h *handlers) databaseConnection(_ context.Context, call *model.Call, in *connectionInput) (Connection, error) {
	if !utf8.ValidString(in.CAFile) || strings.ContainsFunc(in.CAFile, unicode.IsControl) {
		return Connection{}, model.Invalid("ca_file", "must be a path without control characters")
	}
	connection, err := h.engine.Databases.Connection(call, in.ID)
	if err != nil {
		return Connection{}, err
	}
	return NewConnection(connection, in.CAFile), nil
}
