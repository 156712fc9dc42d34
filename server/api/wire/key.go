package wire

import "time"

// Key is an API key's record. It never contains the key or its hash.
type Key struct {
	ID             string     `json:"id"`
	Name           string     `json:"name"`
	Preview        string     `json:"preview" doc:"The part of the key that may be shown."`
	Scopes         []string   `json:"scopes"`
	Preset         KeyPreset  `json:"preset"`
	AllowDangerous bool       `json:"allow_dangerous" doc:"Whether it may use its destructive scopes."`
	Source         KeySource  `json:"source"`
	CreatedAt      time.Time  `json:"created_at"`
	CreatedBy      Actor      `json:"created_by"`
	ExpiresAt      *time.Time `json:"expires_at"`
	LastUsedAt     *time.Time `json:"last_used_at"`
	LastUsedIP     *string    `json:"last_used_ip"`
	RevokedAt      *time.Time `json:"revoked_at"`
}

// CreateKey is a request to create a key.
type CreateKey struct {
	Name           string       `json:"name" doc:"1 to 63 letters, digits, spaces, dots, underscores or hyphens."`
	Preset         *ScopePreset `json:"preset,omitzero" required:"false" doc:"A set of scopes; exactly one of preset and scopes is needed."`
	Scopes         []Scope      `json:"scopes,omitzero" required:"false" minItems:"1" maxItems:"64" doc:"Individual scopes. The key in use must hold each of them."`
	ExpiresAt      *time.Time   `json:"expires_at,omitzero" required:"false" doc:"When the key ends: in the future, and not after the key in use, whose end is the default."`
	AllowDangerous *bool        `json:"allow_dangerous,omitzero" required:"false" doc:"Only a person turns this on, in the console: true is refused with 403."`
}

// CreatedKey is a new key.
type CreatedKey struct {
	APIKey string `json:"api_key" doc:"The key itself, which is shown only this once."`
	Key    Key    `json:"key"`
}

// UpdateKey is a request to change a key.
type UpdateKey struct {
	Name           *string    `json:"name,omitzero" required:"false" doc:"As for a new key; unchanged when left out."`
	ExpiresAt      *time.Time `json:"expires_at,omitzero" required:"false" doc:"When the key ends: in the future, and sooner than so far. Unchanged when left out."`
	AllowDangerous *bool      `json:"allow_dangerous,omitzero" required:"false" doc:"Only a person turns this on or off, in the console: any value is refused with 403."`
}
