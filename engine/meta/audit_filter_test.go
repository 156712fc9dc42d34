package meta

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"holdfast/engine/model"
)

// randomAudits makes entries with few different values, in almost chronological
// order.
func randomAudits(n int) []*model.AuditEntry {
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(kind string, of int) string { return fmt.Sprintf("%s_%d", kind, random.IntN(of)) }
	entries := make([]*model.AuditEntry, n)
	for i := range entries {
		e := &model.AuditEntry{
			ID: fmt.Sprintf("evt_%06d", i), Organization: "org_1",
			At:     time.Date(2026, 1, 1, 0, i, -random.IntN(500), 0, time.UTC),
			Action: model.Action(pick("action", 5)), Outcome: []model.Outcome{model.OutcomeSuccess, model.OutcomeDenied, model.OutcomeError}[random.IntN(3)],
			Actor:    model.Actor{Type: []model.ActorType{model.ActorKey, model.ActorUser, model.ActorSystem}[random.IntN(3)]},
			Resource: model.Resource{Type: "database", ID: pick("db", 20)},
		}
		e.RequestID, e.IP = pick("req", 200), pick("ip", 3)
		if i%7 == 0 {
			e.Details = map[string]string{"ip": "ip_1"} // not where it came from
		}
		if i%3 > 0 {
			e.Actor.ID = pick("key", 10)
		}
		entries[i] = e
	}
	return entries
}

func (f AuditFilter) wants(e *model.AuditEntry) bool {
	return (f.Action == "" || f.Action == string(e.Action)) && (f.Outcome == "" || f.Outcome == string(e.Outcome)) &&
		(f.Actor == "" || f.Actor == e.Actor.ID || f.Actor == string(e.Actor.Type)) &&
		(f.Resource == "" || f.Resource == e.Resource.ID) &&
		(f.RequestID == "" || f.RequestID == e.RequestID) && (f.IP == "" || f.IP == e.IP) &&
		!e.At.Before(f.Since) && (f.Until.IsZero() || e.At.Before(f.Until))
}

// Every filter finds what a walk over all entries finds, page by page, even after
// the older entries are pruned.
func TestAuditFilters(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	const made, keep = 1200, 1000
	entries := randomAudits(made)
	for part := range slices.Chunk(entries, 100) {
		update(t, db, func(tx *Tx) error { return tx.AppendAudit(testChain(keep), part...) })
	}
	kept := entries[made-keep:]
	minute := func(n int) time.Time { return time.Date(2026, 1, 1, 0, n, 0, 0, time.UTC) }
	for _, filter := range []AuditFilter{
		{Action: "action_1"},
		{Actor: "key_3"},
		{Actor: "user"},
		{Actor: "api_key"},
		{Outcome: "success"},
		{Actor: "api_key", Outcome: "success", Action: "action_4"},
		{Resource: "db_7"},
		{Outcome: "denied"},
		{Action: "nothing"},
		{Action: "action_2", Outcome: "error"},
		{Action: "action_2", Actor: "user", Resource: "db_1", Outcome: "success"},
		{Since: minute(700)},
		{Until: minute(700)},
		{Since: minute(500), Until: minute(510)},
		{Since: minute(5000)},
		{Until: minute(-60)},
		{Since: minute(600), Until: minute(500)},
		{RequestID: "req_17"},
		{IP: "ip_1"},
		{IP: "ip_2", Action: "action_1", Since: minute(300), Until: minute(900)},
		{RequestID: "req"},
		{Actor: "system", Since: minute(900), Until: minute(1000)},
	} {
		t.Run(fmt.Sprintf("%+v", filter), func(t *testing.T) {
			var want []string
			for _, e := range slices.Backward(kept) {
				if filter.wants(e) {
					want = append(want, e.ID)
				}
			}
			var got []string
			for more := true; more; {
				view(t, db, func(tx *Tx) (err error) {
					var page []model.AuditEntry
					page, more, err = tx.AuditPage("org_1", filter, uint64(len(got)), 30)
					for _, e := range page {
						got = append(got, e.ID)
					}
					return err
				})
			}
			if !slices.Equal(got, want) {
				t.Errorf("found %d, want %d:\n%v\n%v", len(got), len(want), got, want)
			}
			if got := batches(t, db, filter); !slices.Equal(got, want) {
				t.Errorf("in batches %d, want %d:\n%v\n%v", len(got), len(want), got, want)
			}
		})
	}
}

// batches returns the ids of all entries that match a filter, as AuditBatch finds them.
func batches(t *testing.T, db *DB, filter AuditFilter) (ids []string) {
	t.Helper()
	for before, more := uint64(0), true; more; more = before > 0 {
		view(t, db, func(tx *Tx) (err error) {
			var batch []model.AuditEntry
			batch, before, err = tx.AuditBatch("org_1", filter, before, 7)
			for _, e := range batch {
				ids = append(ids, e.ID)
			}
			return err
		})
	}
	return ids
}

// Pages omit a damaged entry and do not end at it.
func TestAuditPageBehindADamagedEntry(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	appendAudits(t, db, "org_1", 1, 5, 2)
	damage(t, db, 4)
	dropIndex(t, db, 4)
	if ids := auditIDs(t, db, "org_1", 0, 10); !slices.Equal(ids, []string{"evt_5"}) {
		t.Errorf("the page has %v", ids)
	}
	appendAudits(t, db, "org_1", 6, 3, 2) // it is pruned too
}

// TestAuditOfAClockSetBack: entries that were made while the clock was ahead hide no others from a search by time.
func TestAuditOfAClockSetBack(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	minute := func(n int) time.Time { return time.Date(2026, 1, 1, 0, n, 0, 0, time.UTC) }
	var kept []*model.AuditEntry
	const made, keep = 1000, 900
	for i := range made {
		at := minute(i)
		if i%300 > 250 { // three times
			at = at.Add(48 * time.Hour)
		}
		entry := &model.AuditEntry{ID: fmt.Sprintf("evt_%06d", i), Organization: "org_1", At: at, Action: "key.create"}
		update(t, db, func(tx *Tx) error { return tx.AppendAudit(testChain(keep), entry) })
		if i >= made-keep {
			kept = append(kept, entry)
		}
	}
	for _, filter := range []AuditFilter{
		{Until: minute(made + 60)},
		{Until: minute(700)},
		{Since: minute(700)},
		{Since: minute(290), Until: minute(310)},
		{Since: minute(48 * 60)},
		{Since: minute(48*60 + 520), Until: minute(48*60 + 560)},
		{Until: minute(50)},
	} {
		var want []string
		for _, e := range slices.Backward(kept) {
			if filter.wants(e) {
				want = append(want, e.ID)
			}
		}
		var paged, searched []string
		view(t, db, func(tx *Tx) error {
			page, _, err := tx.AuditPage("org_1", filter, 0, made)
			for _, e := range page {
				paged = append(paged, e.ID)
			}
			return err
		})
		view(t, db, func(tx *Tx) error {
			found, _, err := tx.SearchAudit("org_1", AuditQuery{Since: filter.Since, Until: filter.Until}, 0, made)
			for _, e := range found {
				searched = append(searched, e.ID)
			}
			return err
		})
		if !slices.Equal(paged, want) || !slices.Equal(searched, want) {
			t.Errorf("%v to %v: %d in pages, %d by a search, want %d", filter.Since, filter.Until, len(paged), len(searched), len(want))
		}
	}
}
