package client

import (
	"context"
	"time"
)

// SSL is how a database's connections are encrypted.
type SSL struct {
	Enabled            bool           `json:"enabled"`
	Enforced           bool           `json:"enforced"`
	MinProtocolVersion string         `json:"min_protocol_version"`
	Certificate        Certificate    `json:"certificate"`
	CACertificate      string         `json:"ca_certificate"` // PEM
	Connections        SSLConnections `json:"connections"`
}

// Certificate is the server certificate of a database.
type Certificate struct {
	Subject           string    `json:"subject"`
	Issuer            string    `json:"issuer"`
	SANs              []string  `json:"sans"`
	NotBefore         time.Time `json:"not_before"`
	NotAfter          time.Time `json:"not_after"`
	SHA256Fingerprint string    `json:"sha256_fingerprint"`
}

// SSLConnections counts the open sessions; nil until they were first counted.
type SSLConnections struct {
	SSL    *int `json:"ssl"`
	NonSSL *int `json:"non_ssl"`
}

// Allowlist is who may connect to a database.
type Allowlist struct {
	Entries            []string  `json:"entries"`
	UpdatedAt          time.Time `json:"updated_at"`
	AppliedAt          time.Time `json:"applied_at"`
	SessionsTerminated int       `json:"sessions_terminated"`
}

// ReplaceAllowlist is a whole new list.
type ReplaceAllowlist struct {
	Entries []string `json:"entries"`
}

// RLS is the row-level security of every table of a database.
type RLS struct {
	Tables  []RLSTable `json:"tables"`
	Summary RLSSummary `json:"summary"`
}

// RLSTable is one table with its row-level security.
type RLSTable struct {
	Schema        string      `json:"schema"`
	Table         string      `json:"table"`
	Owner         string      `json:"owner"`
	RLSEnabled    bool        `json:"rls_enabled"`
	RLSForced     bool        `json:"rls_forced"`
	EstimatedRows *int64      `json:"estimated_rows"`
	Policies      []RLSPolicy `json:"policies"`
	Warning       *string     `json:"warning"`
}

// RLSPolicy is one policy, as pg_policies shows it.
type RLSPolicy struct {
	Name       string   `json:"name"`
	Command    string   `json:"command"`
	Permissive bool     `json:"permissive"`
	Roles      []string `json:"roles"`
	Using      *string  `json:"using"`
	WithCheck  *string  `json:"with_check"`
}

// RLSSummary counts the tables.
type RLSSummary struct {
	Total         int `json:"total"`
	Enabled       int `json:"enabled"`
	Forced        int `json:"forced"`
	WithoutPolicy int `json:"without_policy"`
}

// SetRLS turns row-level security of one table on or off.
type SetRLS struct {
	Table   string `json:"table"`
	Schema  string `json:"schema,omitempty"` // public when empty
	Enabled bool   `json:"enabled"`
	Force   *bool  `json:"force,omitempty"` // as it is when nil
}

// GetDatabaseSSL returns how the database's connections are encrypted.
func (c *Client) GetDatabaseSSL(ctx context.Context, id string) (SSL, error) {
	return one[SSL](ctx, c, "GET", path("databases", id, "ssl"), nil)
}

// GetDatabaseAllowlist returns who may connect.
func (c *Client) GetDatabaseAllowlist(ctx context.Context, id string) (Allowlist, error) {
	return one[Allowlist](ctx, c, "GET", path("databases", id, "allowlist"), nil)
}

// ReplaceDatabaseAllowlist replaces the whole list; an empty one lets nobody
// in.
func (c *Client) ReplaceDatabaseAllowlist(ctx context.Context, id string, in ReplaceAllowlist) (Allowlist, error) {
	if in.Entries == nil {
		in.Entries = []string{} // null is no list
	}
	return one[Allowlist](ctx, c, "PUT", path("databases", id, "allowlist"), in)
}

// GetDatabaseRLS returns the row-level security of all tables.
func (c *Client) GetDatabaseRLS(ctx context.Context, id string) (RLS, error) {
	return one[RLS](ctx, c, "GET", path("databases", id, "rls"), nil)
}

// SetDatabaseRLS turns row-level security of a table on or off.
func (c *Client) SetDatabaseRLS(ctx context.Context, id string, in SetRLS) (RLSTable, error) {
	return one[RLSTable](ctx, c, "POST", path("databases", id, "rls"), in)
}
