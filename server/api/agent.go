package api

import (
	"context"
	"time"

	"holdfast/engine/databases"
	"holdfast/engine/insight"
	"holdfast/engine/model"
	"holdfast/server/api/wire"
)

// NewOrganization returns the wire form of an organization.
func NewOrganization(o model.Organization) wire.Organization {
	return wire.Organization{ID: o.ID, Name: o.Name, CreatedAt: utc(o.CreatedAt)}
}

// statusRecommendations is the maximum number of recommendations in the status.
const statusRecommendations = 5

// NewStatus returns the wire form of an account's status.
func NewStatus(s insight.Status) wire.Status {
	view := wire.Status{
		Organization: NewOrganization(s.Organization),
		Projects:     convert(s.Projects, NewProject),
		Key:          wire.KeyPower{Scopes: []string{}},
		Databases:    convert(s.Databases, NewDatabase),
		Backups: wire.BackupHealth{
			NewestCompletedAt: utcOrAbsent(s.NewestBackup),
			NewestVerifiedAt:  utcOrAbsent(s.NewestVerified),
			Unprotected: convert(s.Unprotected, func(db databases.View) wire.NamedReference {
				return wire.NamedReference{ID: db.ID, Name: db.Name}
			}),
		},
		Storage:         wire.Storage{Buckets: s.Usage.Buckets, Objects: s.Usage.Objects, SizeBytes: s.Usage.StorageBytes},
		Usage:           NewUsage(s.Usage, s.Time),
		Operations:      convert(s.Operations, NewOperation),
		Recommendations: convert(s.Recommendations[:min(len(s.Recommendations), statusRecommendations)], NewRecommendation),
		Server:          newServer(s.Server, s.Time),
	}
	if s.Key != nil {
		view.Key = wire.KeyPower{
			Scopes: newScopes(s.Key.Scopes), AllowDangerous: s.Key.AllowDangerous,
			ExpiresAt: utcOrAbsent(s.Key.ExpiresAt),
		}
	}
	return view
}

func newServer(s insight.Server, now time.Time) wire.Server {
	return wire.Server{
		Version: s.Version, Time: utc(now), PostgresVersion: orAbsent(s.PostgresVersion), PostgresOrigin: orAbsent(s.PostgresOrigin),
		DataDirectory: s.DataDirectory, TrashRetentionSeconds: int64(s.TrashRetention.Seconds()), ReplacedRetentionSeconds: int64(s.ReplacedRetention.Seconds()),
	}
}

func (h *handlers) agentStatus(_ context.Context, call *model.Call, _ *nothingInput) (wire.Status, error) {
	status, err := h.engine.Insight.AgentStatus(call)
	if err != nil {
		return wire.Status{}, err
	}
	return NewStatus(status), nil
}
