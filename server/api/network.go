package api

import (
	"context"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"holdfast/engine/databases"
	"holdfast/engine/model"
)

// SSL is how a database's connections are encrypted.
type SSL struct {
	Enabled            bool           `json:"enabled"`
	Enforced           bool           `json:"enforced" doc:"Whether connections from other hosts must be encrypted."`
	MinProtocolVersion string         `json:"min_protocol_version"`
	Certificate        Certificate    `json:"certificate"`
	CACertificate      string         `json:"ca_certificate" doc:"PEM."`
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

// SSLConnections counts the open sessions; null until they were first
// counted.
type SSLConnections struct {
	SSL    *int `json:"ssl"`
	NonSSL *int `json:"non_ssl"`
}

// NewSSL returns the wire form of a database's encryption.
func NewSSL(ssl databases.SSL) SSL {
	c := ssl.Certificate
	view := SSL{
		Enabled: true, Enforced: true, MinProtocolVersion: databases.MinTLSVersion,
		Certificate: Certificate{
			Subject: c.Subject, Issuer: c.Issuer, SANs: append([]string{}, c.SANs...),
			NotBefore: utc(c.NotBefore), NotAfter: utc(c.NotAfter), SHA256Fingerprint: c.Fingerprint,
		},
		CACertificate: ssl.CACertificate,
	}
	if ssl.Statistics != nil {
		view.Connections = SSLConnections{SSL: &ssl.Statistics.SSL, NonSSL: &ssl.Statistics.NonSSL}
	}
	return view
}

func (h *handlers) sslGet(_ context.Context, call *model.Call, in *DatabaseInput) (SSL, error) {
	ssl, err := h.engine.Databases.SSLGet(call, in.ID)
	return NewSSL(ssl), err
}

// Allowlist is who may connect to a database.
type Allowlist struct {
	Entries            []string  `json:"entries" doc:"Addresses and networks, in canonical form."`
	UpdatedAt          time.Time `json:"updated_at"`
	AppliedAt          time.Time `json:"applied_at"`
	SessionsTerminated int       `json:"sessions_terminated" doc:"Open sessions that this request ended."`
}

// NewAllowlist returns the wire form of an allow-list.
func NewAllowlist(a databases.Allowlist) Allowlist {
	return Allowlist{
		Entries:   convert(a.Entries, model.FormatNetwork),
		UpdatedAt: utc(a.UpdatedAt), AppliedAt: utc(a.AppliedAt), SessionsTerminated: a.SessionsTerminated,
	}
}

func (h *handlers) allowlistGet(_ context.Context, call *model.Call, in *DatabaseInput) (Allowlist, error) {
	list, err := h.engine.Databases.AllowlistGet(call, in.ID)
	return NewAllowlist(list), err
}

// ReplaceAllowlist is the whole new list.
type ReplaceAllowlist struct {
	Entries []string `json:"entries" maxItems:"200" maxLength:"64" example:"[\"203.0.113.7\",\"2001:db8::/32\"]" doc:"IPv4 and IPv6 addresses and networks, at most 200; an empty list lets nobody in."`
}

// TransformSchema implements huma.SchemaTransformer.
func (ReplaceAllowlist) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	describe(s.Properties["entries"].Items, "", rule{"pattern": `^[0-9A-Fa-f:.]+(/[0-9]{1,3})?$`})
	return s
}

type replaceAllowlistInput struct {
	DatabaseInput
	Body ReplaceAllowlist
}

func (h *handlers) allowlistSet(ctx context.Context, call *model.Call, in *replaceAllowlistInput) (Allowlist, error) {
	list, err := h.engine.Databases.AllowlistSet(ctx, call, in.ID, in.Body.Entries)
	return NewAllowlist(list), err
}
