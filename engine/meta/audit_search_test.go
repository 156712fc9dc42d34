package meta

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"holdfast/engine/model"
)

// TestSearchAudit compares the search with a check of every entry.
func TestSearchAudit(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	actions := []model.Action{"database.create", "database.delete", "databases.fake", "key.create"}
	outcomes := []model.Outcome{model.OutcomeSuccess, model.OutcomeDenied}
	var all []model.AuditEntry
	update(t, db, func(tx *Tx) error {
		all = nil
		for i := range 200 {
			entry := model.AuditEntry{
				ID: fmt.Sprint("evt_", i), Organization: "org_1", Action: actions[i%4], Outcome: outcomes[i%3%2],
				Actor:    model.Actor{ID: fmt.Sprint("key_", i%5), Name: `na"me`},
				Resource: model.Resource{ID: fmt.Sprint("db_", i%7), Name: "<shop>"},
				IP:       fmt.Sprint("ip_", i%3), At: time.Date(2026, 1, 1, i, 0, 0, 0, time.UTC),
			}
			if err := tx.AppendAudit(testChain(1000), &entry); err != nil {
				return err
			}
			all = append([]model.AuditEntry{entry}, all...)
		}
		return nil
	})
	for _, filter := range []AuditQuery{
		{},
		{Action: "database"},
		{Action: "database.create"},
		{Outcome: model.OutcomeDenied},
		{Actor: "key_3"},
		{Actor: `na"me`, Action: "key"},
		{Target: "<shop>", Outcome: model.OutcomeSuccess},
		{Action: "database", Actor: "key_1", Target: "db_2"},
		{Actor: "nobody"},
		{IP: "ip_1", Action: "key"},
		{Since: time.Date(2026, 1, 3, 0, 0, 0, 0, time.UTC), Until: time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)},
		{Until: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)},
	} {
		var want []string
		for _, e := range all {
			if filter.matches(e) && !e.At.Before(filter.Since) && (filter.Until.IsZero() || e.At.Before(filter.Until)) {
				want = append(want, e.ID)
			}
		}
		var got []string
		for before, pages := uint64(0), 0; pages == 0 || before > 0; pages++ {
			view(t, db, func(tx *Tx) error {
				entries, next, err := tx.SearchAudit("org_1", filter, before, 7)
				for _, e := range entries {
					got = append(got, e.ID)
				}
				before = next
				return err
			})
		}
		if !slices.Equal(got, want) {
			t.Errorf("%+v: found %d, want %d", filter, len(got), len(want))
		}
	}
}
