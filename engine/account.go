package engine

import (
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// PlanSelfHosted is the plan without limits.
const PlanSelfHosted = "self_hosted"

// Usage is what an organization takes, and what the machine has left.
type Usage struct {
	Databases     int64
	DatabaseBytes int64
	Buckets       int64
	Objects       int64
	StorageBytes  int64
	BackupBytes   int64
	Connections   int64
	Host          Host
}

// Usage adds up what the call's organization takes, from the records and the
// newest statistics.
func (e *Engine) Usage(call *model.Call) (Usage, error) {
	host, err := measureHost(e.cfg.DataDir)
	if err != nil {
		return Usage{}, err
	}
	usage := Usage{Host: host}
	err = e.meta.View(func(tx *meta.Tx) error {
		if err := tx.Databases().All(func(db model.Database) error {
			if db.Organization == call.Organization && db.Trash == nil {
				stats, _ := e.stats.get(db.ID)
				usage.Databases++
				usage.DatabaseBytes += stats.SizeBytes
				usage.Connections += int64(stats.Connections)
			}
			return nil
		}); err != nil {
			return err
		}
		if err := tx.Buckets().All(func(b model.Bucket) error {
			if b.Organization == call.Organization {
				usage.Buckets++
				usage.Objects += b.ObjectCount
				usage.StorageBytes += b.SizeBytes
			}
			return nil
		}); err != nil {
			return err
		}
		return tx.Backups().All(func(b model.Backup) error {
			if b.Organization == call.Organization {
				usage.BackupBytes += b.StoredBytes
			}
			return nil
		})
	})
	call.Resource = model.Resource{Type: model.ResourceOrganization, ID: call.Organization}
	return usage, err
}

// Rates returns the budgets each key has.
func (e *Engine) Rates() map[model.RateClass]Rate { return e.cfg.Rates }

// AuditList returns a page, counted from 1, of the audit entries of the
// call's organization, newest first, and whether there is a next one.
func (e *Engine) AuditList(call *model.Call, page, limit int) ([]model.AuditEntry, bool, error) {
	var entries []model.AuditEntry
	var more bool
	size := Page{Limit: limit}.limit()
	err := e.meta.View(func(tx *meta.Tx) (err error) {
		entries, more, err = tx.AuditPage(call.Organization, uint64(page-1)*uint64(size), size)
		return err
	})
	return entries, more, err
}

// AuditVerify checks the chain of audit entries of the call's organization
// and returns how many there are.
func (e *Engine) AuditVerify(call *model.Call) (int, error) {
	var count int
	err := e.meta.View(func(tx *meta.Tx) (err error) {
		count, err = tx.VerifyAudit(call.Organization)
		return err
	})
	return count, err
}
