package api

import (
	"context"
	"strconv"

	"holdfast/engine/databases"
	"holdfast/engine/model"
	"holdfast/server/api/wire"
)

func newPostgresVersion(v databases.Version) wire.PostgresVersion {
	return wire.PostgresVersion{
		Major: strconv.Itoa(v.Major), Version: v.Version, Origin: string(v.Origin), Installed: !v.Fetch, Default: v.Default,
		Lacks: append([]string{}, v.Lacks...),
	}
}

func (h *handlers) postgresVersionList(ctx context.Context, call *model.Call, _ *struct{}) (wire.PostgresVersionList, error) {
	all, err := h.engine.Databases.Versions(ctx, call)
	return wire.PostgresVersionList{Versions: convert(all, newPostgresVersion)}, err
}
