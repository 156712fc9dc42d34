package api

import (
	"context"

	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/server/api/wire"
)

// NewKey returns the wire form of a key.
func NewKey(k model.Key) wire.Key {
	return wire.Key{
		ID: k.ID, Name: k.Name, Preview: k.Preview, Scopes: newScopes(k.Scopes), Preset: wire.KeyPreset(k.Preset),
		AllowDangerous: k.AllowDangerous, Source: wire.KeySource(k.Source),
		CreatedAt: utc(k.CreatedAt), CreatedBy: NewActor(k.CreatedBy),
		ExpiresAt: utcOrAbsent(k.ExpiresAt), LastUsedAt: utcOrAbsent(k.LastUsedAt), LastUsedIP: k.LastUsedIP,
		RevokedAt: utcOrAbsent(k.RevokedAt),
	}
}

func newScopes(scopes []model.Scope) []string {
	return convert(scopes, func(s model.Scope) string { return string(s) })
}

func (h *handlers) keyList(_ context.Context, call *model.Call, in *PageInput) (core.List[wire.Key], error) {
	page, err := h.engine.Access.KeyList(call, in.page())
	return convertList(page, NewKey), err
}
