package core

import (
	"context"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// auditBatch is how many entries are read at once.
const auditBatch = 250

// AuditEach passes all audit entries of the call's organization that match the filter to
// use, newest first, a bounded number at a time. It leaves out those that are added
// meanwhile. An error of use ends it, and so does the end of ctx, of the appliance or of the caller's authority.
func (c *Core) AuditEach(ctx context.Context, call *model.Call, filter AuditFilter, use func([]model.AuditEntry) error) error {
	return c.auditEach(ctx, call, use, func(tx *meta.Tx, before uint64) ([]model.AuditEntry, uint64, error) {
		return tx.AuditBatch(call.Organization, filter, before, auditBatch)
	})
}

// AuditEachFound is AuditEach for a search by a person.
func (c *Core) AuditEachFound(ctx context.Context, call *model.Call, query AuditQuery, use func([]model.AuditEntry) error) error {
	return c.auditEach(ctx, call, use, func(tx *meta.Tx, before uint64) ([]model.AuditEntry, uint64, error) {
		return tx.SearchAudit(call.Organization, query, before, auditBatch)
	})
}

func (c *Core) auditEach(
	ctx context.Context, call *model.Call, use func([]model.AuditEntry) error, read func(tx *meta.Tx, before uint64) (entries []model.AuditEntry, next uint64, err error),
) error {
	view := c.Meta.ViewFlushed // the entries of requests that were answered before
	for before := uint64(0); ; view = c.Meta.View {
		var entries []model.AuditEntry
		err := view(func(tx *meta.Tx) (err error) {
			entries, before, err = read(tx, before)
			return err
		})
		if err == nil {
			err = c.CheckAuthority(call)
		}
		if err == nil && len(entries) > 0 {
			err = use(entries)
		}
		if err != nil || before == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-c.Watchers.Ended():
			return ErrInterrupted
		default:
		}
	}
}
