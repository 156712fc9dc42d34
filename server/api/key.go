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

type createKeyInput struct {
	Body wire.CreateKey
}

func (h *handlers) keyCreate(_ context.Context, call *model.Call, in *createKeyInput) (wire.CreatedKey, error) {
	scopes, err := model.ParseScopes("scopes", convert(in.Body.Scopes, func(s wire.Scope) string { return string(s) }))
	if err != nil {
		return wire.CreatedKey{}, err
	}
	secret, key, err := h.engine.Access.KeyCreate(call, access.NewKey{
		Name: in.Body.Name, Preset: model.Preset(text(in.Body.Preset)), Scopes: scopes,
		AllowDangerous: in.Body.AllowDangerous != nil && *in.Body.AllowDangerous, ExpiresAt: in.Body.ExpiresAt, Source: model.KeySourceAPI,
	})
	call.ETag = key.Tag()
	return wire.CreatedKey{APIKey: secret.Reveal(), Key: NewKey(key)}, err
}

// KeyInput names a key.
type KeyInput struct {
	KeyID string `path:"keyId" doc:"Id of the key." example:"key_01k6zv7r9pxa3c5n8m2q4t6w8y"`
}

func (h *handlers) keyGet(_ context.Context, call *model.Call, in *KeyInput) (wire.Key, error) {
	return taggedKey(call)(h.engine.Access.KeyGet(call, in.KeyID))
}

// taggedKey returns the wire form of a key, and sets the ETag of the response.
func taggedKey(call *model.Call) func(model.Key, error) (wire.Key, error) {
	return func(k model.Key, err error) (wire.Key, error) {
		call.ETag = k.Tag()
		return NewKey(k), err
	}
}

type updateKeyInput struct {
	KeyInput
	Body wire.UpdateKey
}

func (h *handlers) keyUpdate(_ context.Context, call *model.Call, in *updateKeyInput) (wire.Key, error) {
	change := access.KeyChange{Name: in.Body.Name, ExpiresAt: in.Body.ExpiresAt, AllowDangerous: in.Body.AllowDangerous}
	return taggedKey(call)(h.engine.Access.KeyUpdate(call, in.KeyID, change))
}

func (h *handlers) keyRevoke(_ context.Context, call *model.Call, in *KeyInput) (wire.Key, error) {
	return taggedKey(call)(h.engine.Access.KeyRevoke(call, in.KeyID))
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
