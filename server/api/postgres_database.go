package api

import (
	"context"
	"strings"

	"holdfast/engine/model"
	"holdfast/engine/postgres"
	"holdfast/server/api/wire"
)

// DBNameInput names a database of PostgreSQL in a database's server.
type DBNameInput struct {
	DatabaseInput
	DBName string `query:"dbname" minLength:"1" maxLength:"63" doc:"A database beside the main one, of those that GET /databases/{id}/databases lists; the main one when left out." example:"tests"`
}

func (h *handlers) postgresDatabaseList(ctx context.Context, call *model.Call, in *DatabaseInput) (wire.PostgresDatabaseList, error) {
	found, err := h.engine.Databases.PostgresDatabaseList(ctx, call, in.ID)
	return wire.PostgresDatabaseList{Databases: convert(found, newPostgresDatabase)}, err
}

func newPostgresDatabase(d postgres.Database) wire.PostgresDatabase {
	return wire.PostgresDatabase{
		Name: strings.ToValidUTF8(d.Name, "\uFFFD"), Main: d.Main, SizeBytes: d.SizeBytes, Encoding: d.Encoding, AllowConnections: !d.Closed,
	}
}
