package api

import (
	"context"
	"time"

	"holdfast/engine/databases"
	"holdfast/engine/insight"
	"holdfast/engine/model"
)

// Status is an account at a glance.
type Status struct {
	Organization    Organization     `json:"organization"`
	Projects        []Project        `json:"projects"`
	Key             KeyPower         `json:"key"`
	Databases       []Database       `json:"databases"`
	Backups         BackupHealth     `json:"backups"`
	Storage         Storage          `json:"storage"`
	Usage           Usage            `json:"usage"`
	Operations      []Operation      `json:"operations"`
	Recommendations []Recommendation `json:"recommendations" doc:"The gravest, at most 5."`
	Server          Server           `json:"server"`
}

// Organization is an organization's record.
type Organization struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	CreatedAt time.Time `json:"created_at"`
}

// NewOrganization returns the wire form of an organization.
func NewOrganization(o model.Organization) Organization {
	return Organization{ID: o.ID, Name: o.Name, CreatedAt: utc(o.CreatedAt)}
}

// Project is a project's record.
type Project struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	CreatedAt time.Time `json:"created_at"`
}

// NewProject returns the wire form of a project.
func NewProject(p model.Project) Project {
	return Project{ID: p.ID, Name: p.Name, CreatedAt: utc(p.CreatedAt)}
}

// KeyPower is what the key of the request may do.
type KeyPower struct {
	Scopes         []model.Scope `json:"scopes"`
	AllowDangerous bool          `json:"allow_dangerous"`
	ExpiresAt      *time.Time    `json:"expires_at"`
}

// BackupHealth is how safe the databases are.
type BackupHealth struct {
	NewestCompletedAt *time.Time       `json:"newest_completed_at"`
	NewestVerifiedAt  *time.Time       `json:"newest_verified_at"`
	Unprotected       []NamedReference `json:"unprotected" doc:"Databases that are to have a completed backup and have none."`
}

// NamedReference names a resource.
type NamedReference struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// Storage adds up the buckets.
type Storage struct {
	Buckets   int64 `json:"buckets"`
	Objects   int64 `json:"objects"`
	SizeBytes int64 `json:"size_bytes"`
}

// Server is the appliance itself.
type Server struct {
	Version string    `json:"version"`
	Time    time.Time `json:"time"`
}

// statusRecommendations is how many recommendations the status shows.
const statusRecommendations = 5

// NewStatus returns the wire form of an account's status.
func NewStatus(s insight.Status) Status {
	view := Status{
		Organization: NewOrganization(s.Organization),
		Projects:     convert(s.Projects, NewProject),
		Key:          KeyPower{Scopes: []model.Scope{}},
		Databases:    convert(s.Databases, NewDatabase),
		Backups: BackupHealth{
			NewestCompletedAt: utcOrAbsent(s.NewestBackup),
			NewestVerifiedAt:  utcOrAbsent(s.NewestVerified),
			Unprotected: convert(s.Unprotected, func(db databases.View) NamedReference {
				return NamedReference{ID: db.ID, Name: db.Name}
			}),
		},
		Storage:         Storage{Buckets: s.Usage.Buckets, Objects: s.Usage.Objects, SizeBytes: s.Usage.StorageBytes},
		Usage:           NewUsage(s.Usage, s.Time),
		Operations:      convert(s.Operations, NewOperation),
		Recommendations: convert(s.Recommendations[:min(len(s.Recommendations), statusRecommendations)], NewRecommendation),
		Server:          Server{Version: s.Version, Time: utc(s.Time)},
	}
	if s.Key != nil {
		view.Key = KeyPower{
			Scopes: append(view.Key.Scopes, s.Key.Scopes...), AllowDangerous: s.Key.AllowDangerous,
			ExpiresAt: utcOrAbsent(s.Key.ExpiresAt),
		}
	}
	return view
}

func (h *handlers) agentStatus(_ context.Context, call *model.Call, _ *nothingInput) (Status, error) {
	status, err := h.engine.Insight.AgentStatus(call)
	if err != nil {
		return Status{}, err
	}
	return NewStatus(status), nil
}
