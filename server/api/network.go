package api

import (
	"context"

	"holdfast/engine/databases"
	"holdfast/engine/model"
	"holdfast/server/api/wire"
)

// NewSSL returns the wire form of a database's TLS settings.
func NewSSL(ssl databases.SSL) wire.SSL {
	c := ssl.Certificate
	view := wire.SSL{
		Enabled: true, Enforced: true, MinProtocolVersion: databases.MinTLSVersion,
		Certificate: wire.Certificate{
			Subject: c.Subject, Issuer: c.Issuer, SANs: append([]string{}, c.SANs...),
			NotBefore: utc(c.NotBefore), NotAfter: utc(c.NotAfter), SHA256Fingerprint: c.Fingerprint,
		},
		CACertificate: ssl.CACertificate,
	}
	if ssl.Statistics != nil {
		view.Connections = wire.SSLConnections{SSL: &ssl.Statistics.SSL, NonSSL: &ssl.Statistics.NonSSL}
	}
	return view
}

func (h *handlers) sslGet(_ context.Context, call *model.Call, in *DatabaseInput) (wire.SSL, error) {
	ssl, err := h.engine.Databases.SSLGet(call, in.ID)
	return NewSSL(ssl), err
}

// NewAllowlist returns the wire form of an allow-list.
func NewAllowlist(a databases.Allowlist) wire.Allowlist {
	return wire.Allowlist{
		Entries:   model.FormatNetworks(a.Entries),
		UpdatedAt: utc(a.UpdatedAt), AppliedAt: utc(a.AppliedAt), SessionsTerminated: a.SessionsTerminated,
	}
}

func (h *handlers) allowlistGet(_ context.Context, call *model.Call, in *DatabaseInput) (wire.Allowlist, error) {
	list, err := h.engine.Databases.AllowlistGet(call, in.ID)
	call.ETag = list.Tag()
	return NewAllowlist(list), err
}

type replaceAllowlistInput struct {
	DatabaseInput
	Body wire.ReplaceAllowlist
}

func (h *handlers) allowlistSet(ctx context.Context, call *model.Call, in *replaceAllowlistInput) (wire.Allowlist, error) {
	list, err := h.engine.Databases.AllowlistSet(ctx, call, in.ID, in.Body.Entries)
	call.ETag = list.Tag()
	return NewAllowlist(list), err
}
