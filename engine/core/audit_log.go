package core

import (
	"errors"
	"time"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// Chain configures how the appliance chains its audit entries. A broken chain is
// logged as an error: the metadata were tampered with, or the disk is damaged.
func (c *Core) Chain() meta.Chain {
	return meta.Chain{
		Key: c.auditKey, Keep: c.Config.AuditKeep, KeepBytes: c.Config.AuditKeepBytes,
		Broken: func(organization string, number uint64, why string) {
			c.Log.Error("the audit log is damaged: it goes on in a new segment; `holdfast admin audit verify` says more",
				"organization", organization, "entry", number, "reason", why)
		},
	}
}

// AuditFilter selects audit entries.
type AuditFilter = meta.AuditFilter

// AuditList returns a page, counted from 1, of the call's organization's audit
// entries that match the filter, newest first, and whether there is a next one. It searches for the id of a request
// soon after the request first.
func (c *Core) AuditList(call *model.Call, filter AuditFilter, page, limit int) (entries []model.AuditEntry, more bool, err error) {
	for _, window := range windows(filter) {
		entries, more, err = c.auditPage(call, window, page, limit)
		if len(entries) > 0 || err != nil {
			break
		}
	}
	if errors.Is(err, meta.ErrScan) {
		err = model.Invalid("since", "there are too many entries to search all of them for this; narrow the time with since and until, or name an action, actor or resource too")
	}
	return entries, more, err
}

// windows returns the filters to try one after the other: the id of a request contains its time.
func windows(filter AuditFilter) []AuditFilter {
	at, ok := RequestTime(filter.RequestID)
	if !ok || !filter.Since.IsZero() || !filter.Until.IsZero() {
		return []AuditFilter{filter}
	}
	soon, sameDay := filter, filter
	soon.Since, soon.Until = at.Add(-time.Second), at.Add(time.Minute)
	sameDay.Since, sameDay.Until = soon.Since, at.Add(24*time.Hour)
	return []AuditFilter{soon, sameDay, filter}
}

func (c *Core) auditPage(call *model.Call, filter AuditFilter, page, limit int) ([]model.AuditEntry, bool, error) {
	var entries []model.AuditEntry
	var more bool
	size := Page{Limit: limit}.limit()
	err := c.Meta.ViewFlushed(func(tx *meta.Tx) (err error) {
		entries, more, err = tx.AuditPage(call.Organization, filter, uint64(page-1)*uint64(size), size)
		return err
	})
	return entries, more, err
}

// AuditVerify verifies the chain of audit entries of the call's organization.
func (c *Core) AuditVerify(call *model.Call) (meta.Verification, error) {
	var first model.Action
	if call.Organization != "" {
		first = model.ActionOrganizationCreate
	}
	return c.Meta.VerifyAudit(c.Chain(), call.Organization, first)
}

// AuditExport returns up to limit stored entries of the call's organization, oldest
// first, starting at the number from; and the next number, 0 at the end.
func (c *Core) AuditExport(call *model.Call, from uint64, limit int) (lines []string, next uint64, err error) {
	err = c.Meta.ViewFlushed(func(tx *meta.Tx) (err error) {
		lines, next, err = tx.AuditLines(call.Organization, from, limit)
		return err
	})
	return lines, next, err
}

// auditPruneBatch is how many expired entries one transaction removes.
const auditPruneBatch = 1000

// PruneAudits removes audit entries that are older than the operator's retention
// period.
func (c *Core) PruneAudits() error {
	if c.Config.AuditRetention <= 0 {
		return nil
	}
	before, ok := c.RemovableBefore(c.Config.AuditRetention)
	if !ok {
		return nil
	}
	chains := []string{""} // of entries without an organization
	if err := c.Meta.View(func(tx *meta.Tx) error {
		return tx.Organizations().All(func(o model.Organization) error {
			chains = append(chains, o.ID)
			return nil
		})
	}); err != nil {
		return err
	}
	var errs []error
	for _, organization := range chains {
		errs = append(errs, c.pruneAudit(organization, before))
	}
	return errors.Join(errs...)
}

func (c *Core) pruneAudit(organization string, before time.Time) error {
	for more := true; more && c.Lifetime.Err() == nil; {
		if err := c.Meta.Update(func(tx *meta.Tx) (err error) {
			more, err = tx.PruneAudit(c.Chain(), organization, before, auditPruneBatch)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}
