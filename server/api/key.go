package api

import (
	"context"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/model"
)

// Key is an API key's record. It never holds the key or its hash.
type Key struct {
	ID             string        `json:"id"`
	Name           string        `json:"name"`
	Preview        string        `json:"preview" doc:"The part of the key that may be shown."`
	Scopes         []model.Scope `json:"scopes"`
	Preset         model.Preset  `json:"preset"`
	AllowDangerous bool          `json:"allow_dangerous" doc:"Whether it may use its destructive scopes."`
	Source         KeySource     `json:"source"`
	CreatedAt      time.Time     `json:"created_at"`
	CreatedBy      Actor         `json:"created_by"`
	ExpiresAt      *time.Time    `json:"expires_at"`
	LastUsedAt     *time.Time    `json:"last_used_at"`
	LastUsedIP     *string       `json:"last_used_ip"`
	RevokedAt      *time.Time    `json:"revoked_at"`
}

// NewKey returns the wire form of a key.
func NewKey(k model.Key) Key {
	return Key{
		ID: k.ID, Name: k.Name, Preview: k.Preview, Scopes: append([]model.Scope{}, k.Scopes...), Preset: k.Preset,
		AllowDangerous: k.AllowDangerous, Source: KeySource(k.Source),
		CreatedAt: utc(k.CreatedAt), CreatedBy: NewActor(k.CreatedBy),
		ExpiresAt: utcOrAbsent(k.ExpiresAt), LastUsedAt: utcOrAbsent(k.LastUsedAt), LastUsedIP: k.LastUsedIP,
		RevokedAt: utcOrAbsent(k.RevokedAt),
	}
}

func (h *handlers) keyList(_ context.Context, call *model.Call, in *PageInput) (core.List[Key], error) {
	page, err := h.engine.Access.KeyList(call, in.page())
	return convertList(page, NewKey), err
}
