package api

import (
	"time"

	"github.com/danielgtaylor/huma/v2"

	"holdfast/engine/core"
	"holdfast/engine/model"
)

// PageInput is the query of lists. (It and similar types are exported because huma ignores embedded types that are
// not.)
type PageInput struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"100" default:"50" doc:"How many at most."`
	Cursor string `query:"cursor" maxLength:"256" doc:"meta.next_cursor of the page before."`
}

func (p PageInput) page() core.Page { return core.Page{Limit: p.Limit, Cursor: p.Cursor} }

// CreatedInput selects records of a list by when they were made.
type CreatedInput struct {
	CreatedAfter  time.Time `query:"created_after" doc:"Only what was made after this time."`
	CreatedBefore time.Time `query:"created_before" doc:"Only what was made before this time."`
}

// Resolve implements huma.Resolver. It rejects an end that is not after the beginning, so a given end is never the
// zero time, which means no end.
func (in *CreatedInput) Resolve(ctx huma.Context) []error {
	if ctx.Query("created_before") != "" && !in.CreatedBefore.After(in.CreatedAfter) {
		return []error{model.Invalid("created_before", "must be after created_after")}
	}
	return nil
}

func (in CreatedInput) created() core.Filter {
	return core.Filter{CreatedAfter: in.CreatedAfter, CreatedBefore: in.CreatedBefore}
}

// FilterInput selects records of a list by what most of them have.
type FilterInput struct {
	Project string `query:"project" minLength:"1" maxLength:"64" doc:"Only those of the project with this id."`
	NameInput
}

// NameInput is FilterInput for records without a project.
type NameInput struct {
	Name string `query:"name" minLength:"1" maxLength:"256" doc:"Only those with exactly this name."`
	CreatedInput
}

func (in NameInput) filter() core.Filter {
	f := in.created()
	f.Name = in.Name
	return f
}

func (in FilterInput) filter() core.Filter {
	f := in.NameInput.filter()
	f.Project = in.Project
	return f
}

// nothingInput is a request with nothing but its path and method.
type nothingInput struct{}

// DatabaseInput names a database.
type DatabaseInput struct {
	ID string `path:"id" doc:"Id of the database." example:"db_01k6zv7r9pxa3c5n8m2q4t6w8y"`
}

// databaseActInput is an operation on a database without fields.
type databaseActInput struct {
	DatabaseInput
	Body *NoFields
}

// BackupInput names a backup.
type BackupInput struct {
	DatabaseInput
	BackupID string `path:"backupId" doc:"Id of the backup."`
}

// BucketInput names a bucket.
type BucketInput struct {
	ID string `path:"id" doc:"Id of the bucket." example:"bucket_01k6zv7r9pxa3c5n8m2q4t6w8y"`
}

// NoFields is an optional body without fields.
type NoFields struct{}

// Schema implements huma.SchemaProvider. It makes no component.
func (NoFields) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: false}
}

// text returns what p points to, or "" for nil.
func text[T ~string](p *T) T {
	if p == nil {
		return ""
	}
	return *p
}

// orAbsent returns nil, which is null on the wire, for the zero value.
func orAbsent[T comparable](value T) *T {
	var zero T
	if value == zero {
		return nil
	}
	return &value
}

// utc returns a time in wire form: in UTC, to the microsecond, the resolution of PostgreSQL's commit timestamps. So
// every returned time can be restored.
func utc(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// utcOrAbsent is utc for an optional time.
func utcOrAbsent(t *time.Time) *time.Time {
	if t == nil || t.IsZero() {
		return nil
	}
	at := utc(*t)
	return &at
}
