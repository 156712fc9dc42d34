package engine

import (
	"errors"
	"time"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// chain says how the appliance chains its audit entries. A log that had to be
// begun anew is said aloud: somebody has changed the metadata, or the disk has.
func (e *Engine) chain() meta.Chain {
	return meta.Chain{
		Key: e.auditKey, Keep: e.cfg.AuditKeep, KeepBytes: e.cfg.AuditKeepBytes,
		Broken: func(organization string, number uint64, why string) {
			e.log.Error("the audit log is damaged: it goes on in a new segment; `holdfast admin audit verify` says more",
				"organization", organization, "entry", number, "reason", why)
		},
	}
}

// AuditFilter says which audit entries are wanted.
type AuditFilter = meta.AuditFilter

// AuditList returns a page, counted from 1, of the audit entries of the call's
// organization that the filter wants, newest first, and whether there is a
// next one.
func (e *Engine) AuditList(call *model.Call, filter AuditFilter, page, limit int) ([]model.AuditEntry, bool, error) {
	var entries []model.AuditEntry
	var more bool
	size := Page{Limit: limit}.limit()
	err := e.meta.ViewFlushed(func(tx *meta.Tx) (err error) {
		entries, more, err = tx.AuditPage(call.Organization, filter, uint64(page-1)*uint64(size), size)
		return err
	})
	return entries, more, err
}

// AuditVerify checks the chain of audit entries of the call's organization.
func (e *Engine) AuditVerify(call *model.Call) (meta.Verification, error) {
	var first model.Action
	if call.Organization != "" {
		first = model.ActionOrganizationCreate
	}
	return e.meta.VerifyAudit(e.chain(), call.Organization, first)
}

// AuditExport returns up to limit entries of the call's organization as they
// are stored, oldest first, from the number from on; and the number that is
// next, 0 at the end.
func (e *Engine) AuditExport(call *model.Call, from uint64, limit int) (lines []string, next uint64, err error) {
	err = e.meta.ViewFlushed(func(tx *meta.Tx) (err error) {
		lines, next, err = tx.AuditLines(call.Organization, from, limit)
		return err
	})
	return lines, next, err
}

// auditPruneBatch is how many entries one transaction removes for their age.
const auditPruneBatch = 1000

// pruneAudits removes the audit entries that are older than the operator
// keeps them.
func (e *Engine) pruneAudits() error {
	if e.cfg.AuditRetention <= 0 || e.keepsAll() {
		return nil
	}
	chains := []string{""} // of what belongs to no organization
	if err := e.meta.View(func(tx *meta.Tx) error {
		return tx.Organizations().All(func(o model.Organization) error {
			chains = append(chains, o.ID)
			return nil
		})
	}); err != nil {
		return err
	}
	before := e.clock().Add(-e.cfg.AuditRetention)
	var errs []error
	for _, organization := range chains {
		errs = append(errs, e.pruneAudit(organization, before))
	}
	return errors.Join(errs...)
}

func (e *Engine) pruneAudit(organization string, before time.Time) error {
	for more := true; more && e.ctx.Err() == nil; {
		if err := e.meta.Update(func(tx *meta.Tx) (err error) {
			more, err = tx.PruneAudit(e.chain(), organization, before, auditPruneBatch)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}
