package wire

import "time"

// SSL describes the encryption of a database's connections.
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

// SSLConnections counts the open sessions; the counts are null until the first
// measurement.
type SSLConnections struct {
	SSL    *int `json:"ssl"`
	NonSSL *int `json:"non_ssl"`
}

// Allowlist says which addresses may connect to a database.
type Allowlist struct {
	Entries            []string  `json:"entries" doc:"Addresses and networks, in canonical form."`
	UpdatedAt          time.Time `json:"updated_at"`
	AppliedAt          time.Time `json:"applied_at"`
	SessionsTerminated int       `json:"sessions_terminated" doc:"Open sessions that this request ended."`
}

// ReplaceAllowlist is a request that replaces the whole list.
type ReplaceAllowlist struct {
	Entries []string `json:"entries" maxItems:"200" maxLength:"64" example:"[\"203.0.113.7\",\"2001:db8::/32\"]" doc:"IPv4 and IPv6 addresses and networks, at most 200; an empty list lets nobody in."`
}
