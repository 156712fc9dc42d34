package api

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/engine/access"
	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/engine/postgres/binaries"
	"holdfast/engine/postgres/postgrestest"
	"holdfast/internal/testenv"
	"holdfast/server/api/wire"
)

// The account of an organization on a plan, then on a trial of another plan.
func TestAccountOnAPlan(t *testing.T) {
	plan, err := model.NewPlan("tiny", map[string]int64{"buckets": 2, "storage_bytes": 10})
	if err != nil {
		t.Fatal(err)
	}
	w := open(t, func(c *core.Config) { c.Plans = map[string]model.Plan{"tiny": plan} })
	ask := func(path string) reply {
		t.Helper()
		return w.do(t, request{method: "GET", path: path, key: w.org.read})
	}
	if limits := get[wire.Limits](t, ask("/account/limits")); limits.Plan != model.PlanSelfHosted || limits.Limits != (wire.PlanLimits{}) {
		t.Errorf("limits without a plan: %+v", limits)
	}
	operator := func() *model.Call {
		return &model.Call{Actor: model.Actor{Type: model.ActorOperator}, Organization: w.org.organization}
	}
	if _, err := w.engine.Access.OrganizationSetPlan(operator(), "tiny"); err != nil {
		t.Fatal(err)
	}
	bucket := w.bucket(t, "first")
	w.do(t, request{method: "POST", path: "/buckets/" + bucket.ID + "/objects?key=k", key: w.org.full, body: "12345678"})
	limits := get[wire.Limits](t, ask("/account/limits"))
	if limits.Plan != "tiny" || *limits.Limits.Buckets != 2 || *limits.Limits.StorageBytes != 10 || limits.Limits.Databases != nil {
		t.Errorf("limits: %+v", limits)
	}
	usage := get[wire.Usage](t, ask("/account/usage")).Metrics
	if usage.Buckets.Used != 1 || *usage.Buckets.Limit != 2 || usage.Objects.Used != 1 || usage.Objects.Limit != nil || usage.StorageBytes.Used != 8 {
		t.Errorf("usage: %+v", usage)
	}
	refused := w.do(t, request{method: "POST", path: "/buckets/" + bucket.ID + "/objects?key=l", key: w.org.full, body: "123"})
	if refused.status != http.StatusForbidden || refused.code != string(model.CodeForbidden) ||
		!strings.Contains(refused.msg, "storage_bytes: the plan tiny allows 10, and 8 are in use") {
		t.Errorf("over the limit: %s", refused.text)
	}
	if billing := get[wire.Billing](t, ask("/account/billing")); billing.Plan != "tiny" || billing.Status != "active" || billing.Trial.StartedAt != nil {
		t.Errorf("billing: %+v", billing)
	}
	if _, err := w.engine.Access.OrganizationSetTrial(operator(), model.PlanSelfHosted, time.Hour); err != nil {
		t.Fatal(err)
	}
	if billing := get[wire.Billing](t, ask("/account/billing")); billing.Plan != model.PlanSelfHosted || billing.Status != "trial" || !billing.Trial.Active {
		t.Errorf("billing on trial: %+v", billing)
	}
	if _, err := w.engine.Access.OrganizationSetTrial(operator(), model.PlanSelfHosted, time.Millisecond); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "the end of the trial", func() bool {
		return get[wire.Billing](t, ask("/account/billing")).Status == "trial_ended"
	})
	if billing := get[wire.Billing](t, ask("/account/billing")); billing.Plan != "tiny" || billing.Trial.Active || billing.Trial.EndsAt == nil {
		t.Errorf("billing after the trial: %+v", billing)
	}
}

// TestFeatures checks that the features show what the appliance does, and not what the operator disabled.
func TestFeatures(t *testing.T) {
	t.Parallel()
	all := wire.Features{
		Databases: true, Backups: true, ObjectStorage: true, PointInTimeRecovery: true, ScheduledBackups: true,
		BackupVerification: true, Exports: true, Imports: true, RowLevelSecurity: true, DeviceLogin: true,
	}
	without := all
	without.ScheduledBackups, without.BackupVerification, without.Exports = false, false, false
	bare := all // a machine without pg_dump
	bare.Exports, bare.Imports = false, false
	here := binaries.Search{Explicit: postgrestest.Binaries(t).Dir}
	nowhere := binaries.Search{NoFetch: true, Installed: func() []string { return nil }}
	for _, test := range []struct {
		every   time.Duration
		exports bool
		search  binaries.Search
		want    wire.Features
	}{{time.Hour, true, here, all}, {0, false, here, without}, {time.Hour, true, nowhere, bare}} {
		w := open(t, func(c *core.Config) {
			c.BackupInterval, c.Exports, c.VerifyBackups, c.Search = test.every, test.exports, test.exports, test.search
		})
		if got := get[wire.Limits](t, w.do(t, request{method: "GET", path: "/account/limits", key: w.org.read})).Features; got != test.want {
			t.Errorf("backups every %s, exports %t: %+v", test.every, test.exports, got)
		}
	}
}

// Times in the evidence have the form of all times of the API: UTC, to the microsecond.
func TestTimesInEvidenceHaveTheFormOfTheAPI(t *testing.T) {
	w := open(t)
	form := regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z$`)
	for range 4 {
		w.key(t, w.org.organization, access.NewKey{Preset: model.PresetReadOnly})
	}
	seen := 0
	r := w.do(t, request{method: "GET", path: "/agent/recommendations", key: w.org.read})
	for _, rec := range get[[]wire.Recommendation](t, r) {
		if at, ok := rec.Evidence["created_at"].(string); ok {
			seen++
			if !form.MatchString(at) {
				t.Errorf("%s: created_at is %s", rec.Code, at)
			}
		}
	}
	if seen < 4 {
		t.Errorf("%d recommendations have a created_at, want at least 4", seen)
	}
}

// Recommendations are returned with everything needed to follow them, page by page, and at most the five most severe
// in the status.
func TestRecommendationsOnTheWire(t *testing.T) {
	w := open(t)
	for range 8 {
		w.key(t, w.org.organization, access.NewKey{Preset: model.PresetReadOnly})
	}
	reader := &model.Call{}
	if err := w.engine.Access.Authenticate(reader, w.org.read); err != nil {
		t.Fatal(err)
	}
	var ids []string
	revoked := 0
	for cursor := ""; ; {
		r := w.do(t, request{method: "GET", path: "/agent/recommendations?limit=5" + cursor, key: w.org.read})
		for _, rec := range get[[]wire.Recommendation](t, r) {
			ids = append(ids, rec.ID)
			if rec.Code == "key_without_expiry" && (rec.Action == nil || rec.Resource == nil || rec.Caution == nil || len(rec.Evidence) == 0 || rec.DetectedAt.IsZero()) {
				t.Errorf("%+v", rec)
			}
		}
		if r.next == nil {
			break
		}
		cursor = "&cursor=" + *r.next
		// The last one shown is removed: the next page continues after it.
		if _, about, ok := strings.Cut(ids[len(ids)-1], "key_without_expiry:"); ok && about != reader.Key.ID {
			call := &model.Call{Actor: model.Actor{Type: model.ActorOperator}, Organization: w.org.organization}
			if _, err := w.engine.Access.KeyRevoke(call, about); err != nil {
				t.Fatal(err)
			}
			revoked++
		}
	}
	if revoked == 0 {
		t.Errorf("nothing has gone meanwhile: %v", ids)
	}
	if len(ids) < 12 || len(slices.Compact(slices.Sorted(slices.Values(ids)))) != len(ids) {
		t.Errorf("recommendations: %v", ids)
	}
	status := get[wire.Status](t, w.do(t, request{method: "GET", path: "/agent/status", key: w.org.read}))
	if len(status.Recommendations) != 5 {
		t.Errorf("the status has %d recommendations", len(status.Recommendations))
	}
}
