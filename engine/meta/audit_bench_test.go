package meta

import (
	"fmt"
	"testing"
	"time"

	"holdfast/engine/model"
)

// BenchmarkAuditPage requests the first page of a log of a million entries, without
// a filter and with filters that match few and many, and a page far back.
func BenchmarkAuditPage(b *testing.B) {
	db := openTest(b)
	const entries, batch = 1_000_000, 5000
	at := func(n int64) time.Time { return time.Unix(1_700_000_000+n, 0).UTC() }
	for n := int64(0); n < entries; n += batch {
		part := make([]*model.AuditEntry, batch)
		for i := range part {
			e := auditEntry(n + int64(i))
			e.At = at(n + int64(i))
			if i == 7 {
				e.Outcome, e.Resource.ID = model.OutcomeDenied, "db_rare"
			}
			if i%2 == 0 {
				e.Actor.ID = "key_other"
			}
			part[i] = &e
		}
		update(b, db, func(tx *Tx) error { return tx.AppendAudit(testChain(0), part...) })
	}
	for name, tt := range map[string]struct {
		filter AuditFilter
		skip   uint64
	}{
		"all": {}, "all, page 10000": {skip: 500_000},
		"action": {filter: AuditFilter{Action: string(model.ActionDatabaseGet)}}, "action of nobody": {filter: AuditFilter{Action: "bucket.create"}},
		"rare outcome": {filter: AuditFilter{Outcome: "denied"}}, "rare resource": {filter: AuditFilter{Resource: "db_rare"}},
		"rare resource of another actor": {filter: AuditFilter{Resource: "db_rare", Actor: "key_other"}},
		"actor and success":              {filter: AuditFilter{Actor: "key_other", Outcome: "success"}},
		"a minute long ago":              {filter: AuditFilter{Since: at(1000), Until: at(1060)}},
		"an actor until long ago":        {filter: AuditFilter{Actor: "key_other", Until: at(100_000)}},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				view(b, db, func(tx *Tx) error {
					_, _, err := tx.AuditPage("org_1", tt.filter, tt.skip, 50)
					return err
				})
			}
		})
	}
	b.Run("verify", func(b *testing.B) {
		for b.Loop() {
			if count, err := verifyAudit(b, db, "org_1"); err != nil || count != entries {
				b.Fatal(fmt.Sprint(count, err))
			}
		}
	})
}
