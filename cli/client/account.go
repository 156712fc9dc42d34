package client

import (
	"context"
	"iter"
	"net/url"
	"strconv"
	"time"
)

// Metric is how much of something is used, and how much may be.
type Metric struct {
	Used  int64  `json:"used"`
	Limit *int64 `json:"limit"` // nil is without limit
}

// Usage is what an organization takes.
type Usage struct {
	Period  Period       `json:"period"`
	Metrics UsageMetrics `json:"metrics"`
	Host    Host         `json:"host"`
}

// Period is the time a usage is of.
type Period struct {
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
}

// UsageMetrics are the metrics of an organization.
type UsageMetrics struct {
	Databases     Metric `json:"databases"`
	DatabaseBytes Metric `json:"database_bytes"`
	Buckets       Metric `json:"buckets"`
	Objects       Metric `json:"objects"`
	StorageBytes  Metric `json:"storage_bytes"`
	BackupBytes   Metric `json:"backup_bytes"`
	Connections   Metric `json:"connections"`
}

// Host is what the machine has.
type Host struct {
	DiskTotalBytes       int64  `json:"disk_total_bytes"`
	DiskFreeBytes        int64  `json:"disk_free_bytes"`
	MemoryTotalBytes     *int64 `json:"memory_total_bytes"`
	MemoryAvailableBytes *int64 `json:"memory_available_bytes"`
}

// Limits are what the organization's plan allows.
type Limits struct {
	Plan       string               `json:"plan"`
	Limits     PlanLimits           `json:"limits"`
	Features   Features             `json:"features"`
	RateLimits map[string]RateLimit `json:"rate_limits"` // budgets of each key
}

// PlanLimits bound the metrics of the same names; nil is without limit.
type PlanLimits struct {
	Databases     *int64 `json:"databases"`
	DatabaseBytes *int64 `json:"database_bytes"`
	Buckets       *int64 `json:"buckets"`
	Objects       *int64 `json:"objects"`
	StorageBytes  *int64 `json:"storage_bytes"`
	BackupBytes   *int64 `json:"backup_bytes"`
	Connections   *int64 `json:"connections"`
}

// Features is what the appliance can do.
type Features struct {
	Databases           bool `json:"databases"`
	Backups             bool `json:"backups"`
	ObjectStorage       bool `json:"object_storage"`
	PointInTimeRecovery bool `json:"point_in_time_recovery"`
	ScheduledBackups    bool `json:"scheduled_backups"`
	BackupVerification  bool `json:"backup_verification"`
	Exports             bool `json:"exports"`
	Imports             bool `json:"imports"`
	RowLevelSecurity    bool `json:"row_level_security"`
	DeviceLogin         bool `json:"device_login"`
}

// RateLimit is a budget: so many requests in a window of time.
type RateLimit struct {
	Limit         int   `json:"limit"`
	WindowSeconds int64 `json:"window_seconds"`
}

// Billing is what the organization owes.
type Billing struct {
	Plan           string  `json:"plan"`
	Status         string  `json:"status"`
	Currency       *string `json:"currency"`
	AmountDueCents int64   `json:"amount_due_cents"`
	Trial          Trial   `json:"trial"`
}

// Trial is a plan on trial.
type Trial struct {
	Active    bool       `json:"active"`
	StartedAt *time.Time `json:"started_at"`
	EndsAt    *time.Time `json:"ends_at"`
}

// Actor is who did something.
type Actor struct {
	Type string  `json:"type"`
	ID   *string `json:"id"`
	Name *string `json:"name"`
}

// Key is an API key's record, without the key.
type Key struct {
	ID             string     `json:"id"`
	Name           string     `json:"name"`
	Preview        string     `json:"preview"`
	Scopes         []string   `json:"scopes"`
	Preset         string     `json:"preset"`
	AllowDangerous bool       `json:"allow_dangerous"`
	Source         string     `json:"source"`
	CreatedAt      time.Time  `json:"created_at"`
	CreatedBy      Actor      `json:"created_by"`
	ExpiresAt      *time.Time `json:"expires_at"`
	LastUsedAt     *time.Time `json:"last_used_at"`
	LastUsedIP     *string    `json:"last_used_ip"`
	RevokedAt      *time.Time `json:"revoked_at"`
}

// Resource is what something was about.
type Resource struct {
	Type string  `json:"type"`
	ID   *string `json:"id"`
	Name *string `json:"name"`
}

// AuditEntry is a line of the audit log.
type AuditEntry struct {
	ID           string            `json:"id"`
	At           time.Time         `json:"at"`
	Actor        Actor             `json:"actor"`
	Action       string            `json:"action"`
	Resource     *Resource         `json:"resource"`
	Outcome      string            `json:"outcome"`
	ErrorCode    *string           `json:"error_code"`
	RequestID    *string           `json:"request_id"`
	IP           *string           `json:"ip"`
	UserAgent    *string           `json:"user_agent"`
	Details      map[string]string `json:"details"`
	PreviousHash string            `json:"previous_hash"`
	Hash         string            `json:"hash"`
}

// AuditPage is a numbered page of the audit log, newest first.
type AuditPage struct {
	Entries []AuditEntry
	HasNext bool
}

// GetUsage returns what the organization takes.
func (c *Client) GetUsage(ctx context.Context) (Usage, error) {
	return one[Usage](ctx, c, "GET", "/account/usage", nil)
}

// GetLimits returns what the plan allows.
func (c *Client) GetLimits(ctx context.Context) (Limits, error) {
	return one[Limits](ctx, c, "GET", "/account/limits", nil)
}

// GetBilling returns what the organization owes.
func (c *Client) GetBilling(ctx context.Context) (Billing, error) {
	return one[Billing](ctx, c, "GET", "/account/billing", nil)
}

// ListKeys returns a page of the API keys.
func (c *Client) ListKeys(ctx context.Context, o ListOptions) (Page[Key], error) {
	return list[Key](ctx, c, "/account/api-keys", o.query())
}

// Keys walks all API keys.
func (c *Client) Keys(ctx context.Context) iter.Seq2[Key, error] { return All(ctx, c.ListKeys) }

// AuditOptions choose entries of the audit log; what is empty chooses all.
type AuditOptions struct {
	Page  int // from 1
	Limit int // how many at most, 1 to 100; 0 leaves it to the API

	Action       string // such as "database.create"
	Actor        string // id of a key or person, or a type of actor
	Resource     string // id
	Outcome      string // success, denied or error
	Since, Until time.Time
}

func (o AuditOptions) query() url.Values {
	query := ListOptions{Limit: o.Limit}.query()
	query.Set("page", strconv.Itoa(max(o.Page, 1)))
	for name, value := range map[string]string{
		"action": o.Action, "actor": o.Actor, "resource": o.Resource, "outcome": o.Outcome,
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	for name, at := range map[string]time.Time{"since": o.Since, "until": o.Until} {
		if !at.IsZero() {
			query.Set(name, at.UTC().Format(time.RFC3339Nano))
		}
	}
	return query
}

// ListAuditLogs returns a page of the audit log.
func (c *Client) ListAuditLogs(ctx context.Context, o AuditOptions) (AuditPage, error) {
	query := o.query()
	entries, m, err := call[[]AuditEntry](ctx, c, "GET", "/account/audit-logs", query, nil)
	return AuditPage{Entries: entries, HasNext: m.HasNext}, err
}
