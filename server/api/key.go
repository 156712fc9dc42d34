package api

import (
	"context"

	"holdfast/engine/access"
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

// NewStorageCredentials returns the wire form of a key's credentials for the S3 endpoint at a URL, "" for none.
func NewStorageCredentials(id string, secret model.Secret, endpoint string) wire.StorageCredentials {
	return wire.StorageCredentials{AccessKeyID: id, SecretAccessKey: secret.Reveal(), Endpoint: orAbsent(endpoint), Region: model.S3Region}
}

func (h *handlers) storageCredentials(_ context.Context, call *model.Call, _ *nothingInput) (wire.StorageCredentials, error) {
	return NewStorageCredentials(call.Key.ID, h.engine.Access.OwnS3Secret(call), h.s3URL), nil
}

type keyListInput struct {
	PageInput
	NameInput
	Preset wire.KeyPreset `query:"preset" doc:"Only those made with this set of scopes."`
	Source wire.KeySource `query:"source" doc:"Only those made this way."`
}

func (h *handlers) keyList(_ context.Context, call *model.Call, in *keyListInput) (core.List[wire.Key], error) {
	filter := access.KeyFilter{Filter: in.filter(), Preset: model.Preset(in.Preset), Source: string(in.Source)}
	page, err := h.engine.Access.KeyList(call, filter, in.page())
	return convertList(page, NewKey), err
}
