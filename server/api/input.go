package api

import (
	"time"

	"github.com/danielgtaylor/huma/v2"

	"holdfast/engine/core"
)

// PageInput is the query of lists. (It and its like are exported for huma,
// which leaves out what is embedded and not exported.)
type PageInput struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"100" default:"50" doc:"How many at most."`
	Cursor string `query:"cursor" maxLength:"256" doc:"meta.next_cursor of the page before."`
}

func (p PageInput) page() core.Page { return core.Page{Limit: p.Limit, Cursor: p.Cursor} }

// nothingInput is a request that is all in its path and method.
type nothingInput struct{}

// DatabaseInput names a database.
type DatabaseInput struct {
	ID string `path:"id" doc:"Id of the database." example:"db_01k6zv7r9pxa3c5n8m2q4t6w8y"`
}

// databaseActInput is an act on a database that has no fields.
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

// NoFields is a body without fields, which may be left out.
type NoFields struct{}

// Schema implements huma.SchemaProvider: there is nothing to name.
func (NoFields) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: false}
}

// text returns what p points to, "" for nil.
func text[T ~string](p *T) T {
	if p == nil {
		return ""
	}
	return *p
}

// orAbsent returns nil for the zero value, which is null on the wire.
func orAbsent[T comparable](value T) *T {
	var zero T
	if value == zero {
		return nil
	}
	return &value
}

// utc returns a time as it is written: in UTC, to the microsecond, which is
// what PostgreSQL stamps commits with. A time that was answered can be restored.
func utc(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// utcOrAbsent is utc for a time there may not be.
func utcOrAbsent(t *time.Time) *time.Time {
	if t == nil || t.IsZero() {
		return nil
	}
	at := utc(*t)
	return &at
}
