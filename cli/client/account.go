package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
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

func (o AuditOptions) page() url.Values {
	query := o.filter(ListOptions{Limit: o.Limit}.query())
	query.Set("page", strconv.Itoa(max(o.Page, 1)))
	return query
}

func (o AuditOptions) filter(query url.Values) url.Values {
	setTexts(query, map[string]string{"action": o.Action, "actor": o.Actor, "resource": o.Resource, "outcome": o.Outcome, "request_id": o.RequestID, "ip": o.IP})
	return setTimes(query, map[string]time.Time{"since": o.Since, "until": o.Until})
}

// ListAuditLogs returns a page of the audit log.
func (c *Client) ListAuditLogs(ctx context.Context, o AuditOptions) (AuditPage, error) {
	entries, m, err := call[[]wire.AuditEntry](ctx, c, "GET", "/account/audit-logs", o.page(), nil)
	return AuditPage{Entries: entries, HasNext: m.HasNext}, err
}

// AuditLogs iterates over the entries of the audit log that o selects, from its
// page on.
func (c *Client) AuditLogs(ctx context.Context, o AuditOptions) iter.Seq2[wire.AuditEntry, error] {
	return func(yield func(wire.AuditEntry, error) bool) {
		if o.Limit == 0 {
			o.Limit = maxLimit
		}
		for o.Page = max(o.Page, 1); ; o.Page++ {
			page, err := c.ListAuditLogs(ctx, o)
			if err != nil {
				yield(wire.AuditEntry{}, err)
				return
			}
			for _, entry := range page.Entries {
				if !yield(entry, nil) {
					return
				}
			}
			if !page.HasNext {
				return
			}
		}
	}
}

// ExportAuditLogs iterates over the entries of the audit log that o selects, newest
// first, in one request; it ignores the page and the limit. The last error is
// io.ErrUnexpectedEOF where the appliance did not say that these are all.
func (c *Client) ExportAuditLogs(ctx context.Context, o AuditOptions) iter.Seq2[wire.AuditEntry, error] {
	return func(yield func(wire.AuditEntry, error) bool) {
		answer, err := c.lines(ctx, Request{Method: "GET", Path: "/account/audit-logs/export", Query: o.filter(url.Values{})})
		if err != nil {
			yield(wire.AuditEntry{}, err)
			return
		}
		defer answer.Close()
		for lines := json.NewDecoder(answer); ; {
			var line struct {
				wire.AuditEntry
				Complete bool `json:"complete"`
			}
			err := lines.Decode(&line)
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			if err != nil {
				yield(wire.AuditEntry{}, fmt.Errorf("the export of the audit log was cut off: %w", err))
				return
			}
			if line.Complete || !yield(line.AuditEntry, nil) {
				return
			}
		}
	}
}

// lines sends a request for lines of JSON. The caller closes them.
func (c *Client) lines(ctx context.Context, r Request) (io.ReadCloser, error) {
	answer, err := c.retrying(ctx, r)
	if err != nil {
		return nil, err
	}
	err = Refusal(answer)
	if kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type")); err == nil && kind != "application/x-ndjson" {
		err = notAPI(answer)
	}
	if err != nil {
		answer.Body.Close()
		return nil, err
	}
	return answer.Body, nil
}
