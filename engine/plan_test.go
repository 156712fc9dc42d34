package engine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/imports"
	"holdfast/engine/model"
	"holdfast/engine/objects"
)

// openWithPlans opens an engine without PostgreSQL whose organization is on the plan tiny, with a clock that the test
// moves.
func openWithPlans(t *testing.T, limits map[string]int64) (*appliance, *atomic.Int64) {
	t.Helper()
	cfg := testConfig(t, t.TempDir())
	plan, err := model.NewPlan("tiny", limits)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Plans = map[string]model.Plan{"tiny": plan}
	moved := ahead(&cfg)
	a := openEngine(t, cfg)
	if _, err := a.Access.OrganizationSetPlan(a.call(model.ActionPlanSet), "tiny"); err != nil {
		t.Fatal(err)
	}
	return a, moved
}

// Of thirty concurrent bucket requests as many succeed as the plan allows; the error of the others states the limit,
// the usage and the plan.
func TestPlanLimitHoldsForConcurrentCallers(t *testing.T) {
	t.Parallel()
	a, _ := openWithPlans(t, map[string]int64{"buckets": 3})
	var made atomic.Int64
	var all sync.WaitGroup
	for i := range 30 {
		all.Go(func() {
			_, err := a.Objects.BucketCreate(a.call(model.ActionBucketCreate), objects.NewBucket{Project: a.project, Name: fmt.Sprintf("bucket-%d", i)})
			if err == nil {
				made.Add(1)
				return
			}
			refusedByPlan(t, err, "buckets: the plan tiny allows 3, and 3 are in use")
		})
	}
	all.Wait()
	if made.Load() != 3 {
		t.Errorf("%d buckets were made", made.Load())
	}
	usage, err := a.Insight.Usage(a.call(model.ActionUsageGet))
	if err != nil || usage.Buckets != 3 || usage.Limits[model.MetricBuckets] != 3 {
		t.Errorf("usage %+v, %v", usage, err)
	}
}

// audited counts the audit entries of an action.
func (a *appliance) audited(t *testing.T, action model.Action) (count int) {
	t.Helper()
	entries, _, err := a.Core.AuditList(a.call(model.ActionAuditList), core.AuditFilter{}, 1, core.MaxLimit)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Action == action {
			count++
		}
	}
	return count
}

func refusedByPlan(t *testing.T, err error, says string) {
	t.Helper()
	if model.CodeOf(err) != model.CodeForbidden || !strings.Contains(model.PublicMessage(err), says) {
		t.Errorf("%v, want %q", err, says)
	}
}

// The same for databases, which take their place before they are built and release it if that fails.
func TestPlanLimitOfDatabases(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, filepath.Join(t.TempDir(), "data"))
	plan, err := model.NewPlan("tiny", map[string]int64{"databases": 3})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Plans = map[string]model.Plan{"tiny": plan}
	if err := os.Mkdir(cfg.DataDir, 0o700); err != nil {
		t.Fatal(err)
	}
	a := startEngineOn(t, cfg)
	if _, err := a.Access.OrganizationSetPlan(a.call(model.ActionPlanSet), "tiny"); err != nil {
		t.Fatal(err)
	}
	var made atomic.Int64
	var deleted atomic.Value
	var all sync.WaitGroup
	for i := range 30 {
		all.Go(func() {
			db, _, err := a.Databases.Create(t.Context(), a.call(model.ActionDatabaseCreate), databases.NewDatabase{Project: a.project, Name: fmt.Sprintf("db%d", i)})
			if err == nil {
				made.Add(1)
				deleted.Store(db.ID)
				return
			}
			refusedByPlan(t, err, "databases: the plan tiny allows 3, and 3 are in use")
		})
	}
	all.Wait()
	if made.Load() != 3 {
		t.Fatalf("%d databases were made", made.Load())
	}
	id := deleted.Load().(string)
	if _, err := a.Databases.Delete(t.Context(), a.call(model.ActionDatabaseDelete), id); err != nil {
		t.Fatal(err)
	}
	instead, _ := a.createDatabase(t, "instead")
	_, err = a.Databases.TrashRestore(t.Context(), a.call(model.ActionTrashRestore), id)
	refusedByPlan(t, err, "databases: the plan tiny allows 3")
	_, err = a.Imports.Create(t.Context(), a.call(model.ActionImportCreate), imports.NewImport{
		Project: a.project, Name: "imported", SourceURL: model.NewSecret("postgresql://owner@192.0.2.1/shop"),
	})
	refusedByPlan(t, err, "databases: the plan tiny allows 3")
	backup := a.backUp(t, instead.ID)
	_, err = a.Recovery.BackupRestore(a.call(model.ActionBackupRestore), instead.ID, backup.ID, new("restored"))
	refusedByPlan(t, err, "databases: the plan tiny allows 3")
}

func TestPlanLimitOfObjects(t *testing.T) {
	t.Parallel()
	a, _ := openWithPlans(t, map[string]int64{"objects": 2, "storage_bytes": 10})
	bucket := a.bucket(t, "files")
	upload := func(key, body string, length int64) error {
		_, err := a.Objects.ObjectUpload(t.Context(), a.call(model.ActionObjectUpload), objects.Upload{
			Bucket: bucket, Key: key, Body: strings.NewReader(body), Length: length, ContentType: "text/plain",
		})
		return err
	}
	if err := errors.Join(upload("a", "12345678", 8), upload("b", "1", 1)); err != nil {
		t.Fatal(err)
	}
	refusedByPlan(t, upload("c", "1", 1), "objects: the plan tiny allows 2, and 2 are in use")
	refusedByPlan(t, upload("b", "1234", 4), "storage_bytes: the plan tiny allows 10, and 9 are in use")
	refusedByPlan(t, upload("b", "1234", -1), "storage_bytes: the plan tiny allows 10") // known only after reading the body
	// An upload that replaces a larger object, or shrinks one over the limit, is allowed.
	if err := errors.Join(upload("a", "1234567", 7), upload("b", "123", 3)); err != nil {
		t.Error(err)
	}
	if _, err := a.Objects.ObjectDelete(t.Context(), a.call(model.ActionObjectDelete), objects.Deletion{Bucket: bucket, Key: "a"}); err != nil {
		t.Error(err)
	}
	if err := upload("c", "1", 1); err != nil {
		t.Error(err)
	}
}

// A trial is another plan for a limited time; its end is audited once, removes nothing, and prevents growth.
func TestTrialEnds(t *testing.T) {
	t.Parallel()
	a, moved := openWithPlans(t, map[string]int64{"buckets": 0})
	create := func(name string) error {
		_, err := a.Objects.BucketCreate(a.call(model.ActionBucketCreate), objects.NewBucket{Project: a.project, Name: name})
		return err
	}
	refusedByPlan(t, create("early"), "allows 0")
	if _, err := a.Access.OrganizationSetTrial(a.call(model.ActionTrialSet), model.PlanSelfHosted, time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := create("during"); err != nil {
		t.Error(err)
	}
	moved.Store(int64(10 * 365 * 24 * time.Hour)) // by a clock that is wrong
	if err := a.Access.ConcludeTrials(); err != nil {
		t.Fatal(err)
	}
	if n := a.audited(t, model.ActionTrialEnd); n != 0 {
		t.Errorf("the end of the trial was audited %d times while the clock was far ahead", n)
	}
	moved.Store(int64(time.Hour))
	refusedByPlan(t, create("late"), "buckets: the plan tiny allows 0, and 1 are in use")
	for range 2 {
		if err := a.Access.ConcludeTrials(); err != nil {
			t.Fatal(err)
		}
	}
	if n := a.audited(t, model.ActionTrialEnd); n != 1 {
		t.Errorf("the end of the trial was audited %d times", n)
	}
	account, err := a.Access.AccountGet(a.call(model.ActionBillingGet))
	if err != nil || account.Plan.Name != "tiny" || account.Organization.Trial == nil {
		t.Errorf("%+v, %v", account, err)
	}
}

// A plan that is missing from the config file does not mean unlimited.
func TestPlanThatIsGone(t *testing.T) {
	t.Parallel()
	a, _ := openWithPlans(t, map[string]int64{"buckets": 3})
	bucket := objects.NewBucket{Project: a.project, Name: "first"}
	if _, err := a.Objects.BucketCreate(a.call(model.ActionBucketCreate), bucket); err != nil {
		t.Fatal(err)
	}
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	cfg := a.cfg
	cfg.Plans = nil
	b := openEngine(t, cfg)
	bucket.Name = "second"
	_, err := b.Objects.BucketCreate(b.call(model.ActionBucketCreate), bucket)
	refusedByPlan(t, err, "not in the config file")
	if _, err := b.Access.OrganizationSetPlan(b.call(model.ActionPlanSet), "tiny"); model.CodeOf(err) != model.CodeValidation {
		t.Errorf("an unknown plan: %v", err)
	}
	if _, err := b.Access.OrganizationSetPlan(b.call(model.ActionPlanSet), model.PlanSelfHosted); err != nil {
		t.Error(err)
	}
	if _, err := b.Objects.BucketCreate(b.call(model.ActionBucketCreate), bucket); err != nil {
		t.Error(err)
	}
}
