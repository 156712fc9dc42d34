package client

import (
	"context"
	"iter"
	"net/url"
	"strconv"
	"time"

	"holdfast/server/api/wire"
)

// AuditPage is a numbered page of the audit log, newest first.
type AuditPage struct {
	Entries []wire.AuditEntry
	HasNext bool
}

// GetUsage returns what the organization uses.
func (c *Client) GetUsage(ctx context.Context) (wire.Usage, error) {
	return one[wire.Usage](ctx, c, "GET", "/account/usage", nil)
}

// GetLimits returns what the plan allows.
func (c *Client) GetLimits(ctx context.Context) (wire.Limits, error) {
	return one[wire.Limits](ctx, c, "GET", "/account/limits", nil)
}

// GetBilling returns what the organization owes.
func (c *Client) GetBilling(ctx context.Context) (wire.Billing, error) {
	return one[wire.Billing](ctx, c, "GET", "/account/billing", nil)
}

// GetOffsite returns how far the copy of the appliance in a store elsewhere is.
func (c *Client) GetOffsite(ctx context.Context) (wire.Offsite, error) {
	return one[wire.Offsite](ctx, c, "GET", "/account/offsite", nil)
}

// KeyOptions select API keys; an empty field selects all. Keys have no project.
type KeyOptions struct {
	ListOptions
	Filter
	Preset wire.KeyPreset
	Source wire.KeySource
}

// ListKeys returns a page of the API keys.
func (c *Client) ListKeys(ctx context.Context, o KeyOptions) (Page[wire.Key], error) {
	query := setTexts(o.add(o.query()), map[string]string{"preset": string(o.Preset), "source": string(o.Source)})
	return list[wire.Key](ctx, c, "/account/api-keys", query)
}

// Keys iterates over the API keys that o selects.
func (c *Client) Keys(ctx context.Context, o KeyOptions) iter.Seq2[wire.Key, error] {
	return all(ctx, o, func(o *KeyOptions) *ListOptions { return &o.ListOptions }, c.ListKeys)
}

// GetStorageCredentials returns the key in use as an access key for the S3 endpoint.
func (c *Client) GetStorageCredentials(ctx context.Context) (wire.StorageCredentials, error) {
	return one[wire.StorageCredentials](ctx, c, "GET", "/account/storage-credentials", nil)
}

// AuditOptions select entries of the audit log; an empty field selects all.
type AuditOptions struct {
	Page  int // from 1
	Limit int // maximum number of entries, 1 to 100; 0 means the API's default

	Action       string // such as "database.create"
	Actor        string // id of a key or person, or an actor type
	Resource     string // id
	Outcome      string // success, denied or error
	RequestID    string // of a response
	IP           string // address of the client
	Since, Until time.Time
}

func (o AuditOptions) query() url.Values {
	query := ListOptions{Limit: o.Limit}.query()
	query.Set("page", strconv.Itoa(max(o.Page, 1)))
	setTexts(query, map[string]string{"action": o.Action, "actor": o.Actor, "resource": o.Resource, "outcome": o.Outcome, "request_id": o.RequestID, "ip": o.IP})
	return setTimes(query, map[string]time.Time{"since": o.Since, "until": o.Until})
}

// ListAuditLogs returns a page of the audit log.
func (c *Client) ListAuditLogs(ctx context.Context, o AuditOptions) (AuditPage, error) {
	query := o.query()
	entries, m, err := call[[]wire.AuditEntry](ctx, c, "GET", "/account/audit-logs", query, nil)
	return AuditPage{Entries: entries, HasNext: m.HasNext}, err
}
