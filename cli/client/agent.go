package client

import (
	"context"
	"iter"
	"time"
)

// Status is an account at a glance.
type Status struct {
	Organization    Organization     `json:"organization"`
	Projects        []Project        `json:"projects"`
	Key             KeyPower         `json:"key"`
	Databases       []Database       `json:"databases"`
	Backups         BackupStatus     `json:"backups"`
	Storage         Storage          `json:"storage"`
	Usage           Usage            `json:"usage"`
	Operations      []Operation      `json:"operations"`
	Recommendations []Recommendation `json:"recommendations"` // the gravest
	Server          Server           `json:"server"`
}

// Organization is an organization's record.
type Organization struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	CreatedAt time.Time `json:"created_at"`
}

// Project is a project's record.
type Project struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	CreatedAt time.Time `json:"created_at"`
}

// KeyPower is what the key of the request may do.
type KeyPower struct {
	Scopes         []string   `json:"scopes"`
	AllowDangerous bool       `json:"allow_dangerous"`
	ExpiresAt      *time.Time `json:"expires_at"`
}

// BackupStatus is how safe the databases are.
type BackupStatus struct {
	NewestCompletedAt *time.Time       `json:"newest_completed_at"`
	NewestVerifiedAt  *time.Time       `json:"newest_verified_at"`
	Unprotected       []NamedReference `json:"unprotected"` // databases that are to have a completed backup and have none
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

// Recommendation is advice, and how to follow it.
type Recommendation struct {
	ID         string           `json:"id"`
	Code       string           `json:"code"`
	Severity   string           `json:"severity"`
	Category   string           `json:"category"`
	Title      string           `json:"title"`
	Message    string           `json:"message"`
	Resource   *Resource        `json:"resource"`
	Evidence   map[string]any   `json:"evidence"`
	Action     *RecommendedCall `json:"action"` // the request that removes the cause
	SQL        *string          `json:"sql"`    // the statement that removes the cause
	Caution    *string          `json:"caution"`
	DetectedAt time.Time        `json:"detected_at"`
}

// RecommendedCall is a request of this API.
type RecommendedCall struct {
	Method string         `json:"method"`
	Path   string         `json:"path"`
	Body   map[string]any `json:"body"`
}

// GetAgentStatus returns the account at a glance.
func (c *Client) GetAgentStatus(ctx context.Context) (Status, error) {
	return one[Status](ctx, c, "GET", "/agent/status", nil)
}

// ListRecommendations returns a page of the recommendations.
func (c *Client) ListRecommendations(ctx context.Context, o ListOptions) (Page[Recommendation], error) {
	return list[Recommendation](ctx, c, "/agent/recommendations", o.query())
}

// Recommendations walks all recommendations.
func (c *Client) Recommendations(ctx context.Context) iter.Seq2[Recommendation, error] {
	return All(ctx, c.ListRecommendations)
}
