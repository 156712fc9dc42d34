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
