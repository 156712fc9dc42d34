package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"holdfast/engine"
	"holdfast/engine/access"
	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/server/api"
)

// Size of the appliance for tests of size and speed.
const (
	seedDatabases = 50
	seedBackups   = 40  // of the first database
	seedBeside    = 120 // projects and users each
	seedAudit     = 100_000
	seedObjects   = "http://files.example" // base URL of object downloads
)

// console serves the pages over an engine without PostgreSQL, with a signed-in
// owner.
type console struct {
	engine *engine.Engine
	server *httptest.Server
	client *http.Client
	log    *strings.Builder

	description func() ([]byte, error) // the API's OpenAPI document
}

func openConsole(tb testing.TB, audit int) *console {
	tb.Helper()
	dir := tb.TempDir()
	seed(tb, dir, audit)
	c := &console{engine: openEngine(tb, dir), log: &strings.Builder{}}
	tb.Cleanup(func() { closeEngine(tb, c.engine) })
	var handler http.Handler
	c.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(w, r) }))
	tb.Cleanup(c.server.Close)
	v1 := api.New(c.engine, api.Options{BaseURL: c.server.URL})
	c.description = v1.Description
	var err error
	handler, err = New(c.engine, Options{
		BaseURL: c.server.URL, ObjectsURL: seedObjects, StatusOf: api.StatusOfError, Description: v1.Description, WriteAuditExport: api.WriteAuditExport,
		Log: slog.New(slog.NewTextHandler(c.log, nil)),
	})
	if err != nil {
		tb.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		tb.Fatal(err)
	}
	c.client = &http.Client{Jar: jar}
	answer, err := c.client.PostForm(c.server.URL+"/sign-in", url.Values{"email": {"ada@example.com"}, "password": {"correct horse battery"}})
	if err != nil {
		tb.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK || answer.Request.URL.Path != "/" {
		tb.Fatalf("sign in: %s at %s", answer.Status, answer.Request.URL)
	}
	return c
}

func openEngine(tb testing.TB, dir string) *engine.Engine {
	tb.Helper()
	e, err := engine.Open(core.Config{
		DataDir: dir, PublicHost: "127.0.0.1", Rates: core.DefaultRates(), MaxObjectBytes: 1 << 20,
		BackupRetention: time.Hour, AuditKeep: 1 << 20, Version: "test",
	})
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

func closeEngine(tb testing.TB, e *engine.Engine) {
	if err := e.Close(context.Background()); err != nil {
		tb.Error(err)
	}
}

// seed fills the metadata of a new appliance.
func seed(tb testing.TB, dir string, audit int) {
	tb.Helper()
	e := openEngine(tb, dir)
	first, err := e.Access.Initialize(true)
	if err != nil {
		tb.Fatal(err)
	}
	call := &model.Call{Actor: model.Actor{Type: model.ActorOperator}, Organization: first.Organization.ID}
	if _, err := e.Access.UserCreate(call, access.NewUser{
		Email: "ada@example.com", Role: model.RoleOwner, Password: model.NewSecret("correct horse battery"),
	}); err != nil {
		tb.Fatal(err)
	}
	closeEngine(tb, e)
	db, err := meta.Open(filepath.Join(dir, "holdfast.db"))
	if err != nil {
		tb.Fatal(err)
	}
	defer db.Close()
	org := first.Organization.ID
	if err := db.Update(func(tx *meta.Tx) error { return seedRecords(tx, org) }); err != nil {
		tb.Fatal(err)
	}
	for done := 0; done < audit; {
		batch := min(audit-done, 10_000)
		if err := db.Update(func(tx *meta.Tx) error { return seedAuditLog(tx, org, done, batch) }); err != nil {
			tb.Fatal(err)
		}
		done += batch
	}
}

func seedRecords(tx *meta.Tx, org string) error {
	now := time.Now().UTC()
	projects, _, err := tx.Projects().Newest(meta.ByOrganization, meta.Key(org), "", 1)
	if err != nil {
		return err
	}
	for i := range seedDatabases {
		d := model.Database{
			ID: fmt.Sprintf("db_%02d", i), Organization: org, Project: projects[0].ID, Name: fmt.Sprintf("shop%d", i),
			Status: model.DatabaseAvailable, Version: "15.18", Port: 7432 + i, Owner: "app", CreatedAt: now, Generation: 1,
		}
		if err := tx.Databases().Insert(d); err != nil {
			return err
		}
	}
	for i := range seedBackups {
		at := now.Add(time.Duration(i-seedBackups) * time.Hour)
		if err := tx.Backups().Insert(model.Backup{
			ID: fmt.Sprintf("bkp_%02d", i), Organization: org, Database: "db_00", Type: model.BackupScheduled,
			Status: model.BackupCompleted, StartedAt: at, CompletedAt: &at, SizeBytes: 1 << 30, StoredBytes: 1 << 28,
			Generation: 1, Timeline: 1, StartLSN: "0/2000000", StopLSN: "0/2000100",
		}); err != nil {
			return err
		}
	}
	if err := seedBusy(tx, org, projects[0].ID, now); err != nil {
		return err
	}
	for i := range seedBeside {
		if err := tx.Projects().Insert(model.Project{ID: fmt.Sprintf("proj_z%03d", i), Organization: org, Name: fmt.Sprint("project ", i), CreatedAt: now}); err != nil {
			return err
		}
		if err := tx.Users().Insert(model.User{ID: fmt.Sprintf("user_z%03d", i), Organization: org, Email: fmt.Sprintf("p%d@example.com", i), Role: model.RoleViewer}); err != nil {
			return err
		}
	}
	if err := errors.Join(tx.Imports().Insert(seedImport(org, projects[0].ID, now)), tx.Imports().Insert(seedFollowing(org, projects[0].ID, now))); err != nil {
		return err
	}
	for _, series := range []model.Series{model.SeriesDay(), model.SeriesMonth()} {
		for i := range series.Keep {
			at := now.Truncate(series.Step).Add(time.Duration(i-series.Keep+1) * series.Step)
			sample := model.Sample{At: at, SizeBytes: int64(1+i) << 24, Connections: i % 17, Commits: float64(i%29) / 3}
			sample.Archive = &model.ArchiveSample{WALLag: int64(i % 31 << 10), RPO: time.Duration(i%13) * time.Millisecond}
			if err := tx.PutSample("db_00", series, sample); err != nil {
				return err
			}
		}
	}
	if err := tx.Buckets().Insert(model.Bucket{ID: "bucket_1", Organization: org, Project: projects[0].ID, Name: "files"}); err != nil {
		return err
	}
	for i := range 300 {
		if _, err := tx.PutObject(model.Object{
			Bucket: "bucket_1", Key: fmt.Sprintf("folder%d/file%d.txt", i%80, i), Version: fmt.Sprintf("%026d", i), Blob: fmt.Sprint("blob", i),
		}); err != nil {
			return err
		}
	}
	return nil
}

// seedBusy adds a database with a completed backup and a running one.
func seedBusy(tx *meta.Tx, org, project string, now time.Time) error {
	if err := tx.Databases().Insert(model.Database{
		ID: "db_busy", Organization: org, Project: project, Name: "busy", Status: model.DatabaseAvailable, Version: "15.18", Port: 7999,
		Owner: "app", CreatedAt: now, Generation: 1, Operation: "op_busy",
	}); err != nil {
		return err
	}
	if err := tx.Operations().Insert(model.DatabaseOperation{
		ID: "op_busy", Database: "db_busy", Type: model.OperationBackup, Status: model.OperationRunning, Phase: "copying", StartedAt: now,
	}); err != nil {
		return err
	}
	return tx.Backups().Insert(model.Backup{
		ID: "bkp_busy", Organization: org, Database: "db_busy", Type: model.BackupManual, Status: model.BackupCompleted,
		StartedAt: now, CompletedAt: &now, Generation: 1, Timeline: 1, StartLSN: "0/2000000", StopLSN: "0/2000100",
	})
}

// seedImport returns an import with the maximum of stored flaws and log lines.
func seedImport(org, project string, now time.Time) model.Import {
	i := model.Import{
		ID: "imp_1", Organization: org, Project: project, Database: "db_00", Name: "shop0", Status: model.ImportCompletedWithErrors,
		StartedAt: now, CompletedAt: &now,
	}
	i.ErrorsBeyond, i.Roles = 200, []model.ImportRole{{Name: "reporting", Grants: 12}, {Name: "a_role_with_quite_a_long_name_of_the_source", Grants: 1}}
	for n := range 1000 {
		object := fmt.Sprintf("INDEX public.a_table_with_quite_a_name_%d", n)
		i.Errors = append(i.Errors, model.ImportFlaw{Object: object, SQLState: "42501", Message: "permission denied for this object"})
		i.Log = append(i.Log, model.ImportLine{At: now, Level: model.ImportError, Message: object + ": permission denied for this object"})
	}
	return i
}

// seedFollowing returns an import whose database follows its source, with trouble.
func seedFollowing(org, project string, now time.Time) model.Import {
	return model.Import{
		ID: "imp_2", Organization: org, Project: project, Database: "db_00", Name: "shop0", Status: model.ImportFollowing, StartedAt: now,
		Follow: &model.ImportFollow{
			Publication: "everything", Slot: "holdfast_imp_2", NotFollowed: []string{"3 sequences: carried over at the cutover"},
			StaleViews: []model.StaleView{{Name: "public.totals_by_customer_and_month", Since: now, Message: "division by zero"}},
			Trouble:    "the source does not answer", Lag: &model.ImportLag{At: now, Bytes: 4 << 20, Seconds: 7, Retained: 64 << 20},
		},
	}
}

func seedAuditLog(tx *meta.Tx, org string, from, count int) error {
	actions := []model.Action{model.ActionDatabaseList, model.ActionObjectUpload, model.ActionKeyList, model.ActionBackupCreate}
	for i := from; i < from+count; i++ {
		outcome := model.OutcomeSuccess
		if i == 17 {
			outcome = model.OutcomeDenied // only one, on the last page
		}
		if err := tx.AppendAudit(meta.Chain{}, &model.AuditEntry{
			ID: fmt.Sprintf("evt_%026d", i), At: time.Now().UTC(), Organization: org,
			Actor: model.Actor{Type: model.ActorKey, ID: fmt.Sprint("key_", i%9), Name: "a key"}, Action: actions[i%len(actions)],
			Resource: model.Resource{Type: model.ResourceDatabase, ID: fmt.Sprintf("db_%02d", i%seedDatabases), Name: "shop"},
			Outcome:  outcome, RequestID: fmt.Sprintf("req_%026d", i), IP: "192.0.2.1", UserAgent: "curl/8.5.0",
		}); err != nil {
			return err
		}
	}
	return nil
}

// pagePaths are the pages that need no PostgreSQL and no archive.
func pagePaths() []string {
	return []string{
		"/", "/device", "/databases/new", "/databases/db_00", "/databases/db_00?range=month",
		"/databases/db_00/backups/bkp_00", "/databases/db_00/settings", "/databases/db_00/log", "/buckets", "/buckets/bucket_1",
		"/buckets/bucket_1?prefix=folder1%2F", "/buckets/bucket_1/object?key=folder1%2Ffile1.txt", "/keys", "/keys/new", "/audit", "/audit?outcome=denied", "/audit?action=backup&actor=nobody",
		"/offsite", "/people", "/sessions", "/trash", "/projects", "/webhooks", "/settings", "/docs", "/docs/databases", "/docs/storage",
		"/advice", "/advice?database=db_00", "/advice?page=2", "/imports", "/imports/new", "/imports/imp_1", "/imports/imp_2",
	}
}

func (c *console) get(tb testing.TB, path string) string {
	tb.Helper()
	answer, err := c.client.Get(c.server.URL + path)
	if err != nil {
		tb.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		tb.Fatalf("%s: %s, %v: %s", path, answer.Status, err, text)
	}
	return string(text)
}

// mostBytes is the maximum size of a page with all its assets.
const mostBytes = 100 << 10

// mostReference is that of a page of the reference, which grows with the API.
const mostReference = 128 << 10

func TestPagesAreSmall(t *testing.T) {
	t.Parallel()
	c := openConsole(t, 500)
	beside := 0
	for _, a := range mustAssets(t) {
		beside += len(a.content)
	}
	for _, path := range pagePaths() {
		most := mostBytes
		if strings.HasPrefix(path, "/docs/") {
			most = mostReference
		}
		if size := len(c.get(t, path)) + beside; size > most {
			t.Errorf("%s takes %d bytes, %d of them files beside it", path, size, beside)
		}
	}
	if c.log.Len() > 0 {
		t.Errorf("logged: %s", c.log)
	}
}

func mustAssets(t *testing.T) assets {
	t.Helper()
	a, err := loadAssets()
	if err != nil || len(a) == 0 {
		t.Fatalf("%d assets, %v", len(a), err)
	}
	return a
}

// BenchmarkPages measures the server's time for each page of an appliance with
// 50 databases and 100,000 audit entries.
func BenchmarkPages(b *testing.B) {
	c := openConsole(b, seedAudit)
	for _, path := range pagePaths() {
		b.Run(strings.ReplaceAll(path, "/", "|"), func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				began := time.Now()
				c.get(b, path)
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms-median")
			b.ReportMetric(float64(len(c.get(b, path)))/1024, "KiB")
		})
	}
}

// TestEveryRouteHasItsRow names a page without a row in the operations tables;
// building the routes would panic.
func TestEveryRouteHasItsRow(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, r := range routes() {
		op := model.OperationFor(r.action)
		method, path, _ := strings.Cut(r.pattern, " ")
		if seen[r.pattern] {
			t.Errorf("%s is there twice", r.pattern)
		}
		seen[r.pattern] = true
		reads := strings.HasPrefix(op.Name, "get") || strings.HasPrefix(op.Name, "list") || strings.HasPrefix(op.Name, "export")
		changes := op.Name != "" && !reads || op.Scope == "" && op.Role == model.RoleAdmin
		if method == http.MethodGet && changes {
			t.Errorf("%s %s changes something when a link is followed: %s", method, path, op.Action)
		}
		if op.Scope == "" && op.Role == "" {
			t.Errorf("%s: %s asks for neither a scope nor a role", r.pattern, op.Action)
		}
	}
}

// TestPagesNeedNothingFromElsewhere checks the embedded files.
func TestPagesNeedNothingFromElsewhere(t *testing.T) {
	t.Parallel()
	c := openConsole(t, 50)
	for _, path := range pagePaths() {
		page := c.get(t, path)
		for _, banned := range []string{" style=\"", "<style", "javascript:", " onclick=", " onload=", "src=\"http", "<iframe"} {
			if strings.Contains(page, banned) {
				t.Errorf("%s has %s, which the content security policy refuses", path, banned)
			}
		}
		for _, want := range []string{`<html lang="en">`, `<main id="main"`, "<h1", `name="viewport"`} {
			if strings.Count(page, want) != 1 {
				t.Errorf("%s has %d of %s", path, strings.Count(page, want), want)
			}
		}
	}
}

func TestLocalPath(t *testing.T) {
	t.Parallel()
	for to, want := range map[string]string{
		"/keys": "/keys", "/device?user_code=AB-CD": "/device?user_code=AB-CD", "": "/", "keys": "/", "/sign-in?next=/": "/",
		"//elsewhere.example": "/", "///elsewhere.example": "/", `/\elsewhere.example`: "/", "https://elsewhere.example/": "/",
		"javascript:alert(1)": "/", "/%2felsewhere.example": "/", "mailto:a@b": "/",
	} {
		if got := localPath(to); got != want {
			t.Errorf("%q leads to %q, want %q", to, got, want)
		}
	}
}

func TestSentence(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]string{
		"name: must not be empty":                 "name: must not be empty.",
		"url: must be an HTTPS URL":               "url: must be an HTTPS URL.",
		"target_time: nothing is there yet":       "target time: nothing is there yet.",
		"settings.work_mem: must be a size":       "Setting work_mem: must be a size.",
		"ada@example.com has an account":          "ada@example.com has an account.",
		"pg_cron needs a restart":                 "pg_cron needs a restart.",
		"shop2 is a branch":                       "shop2 is a branch.",
		"db.example.com does not answer":          "db.example.com does not answer.",
		"done.":                                   "Done.",
		"überall ist etwas":                       "Überall ist etwas.",
		"the disk is full: free disk space first": "The disk is full: free disk space first.",
		"":           "",
		"try again?": "Try again?",
	} {
		if got := sentence(message); got != want {
			t.Errorf("%q: %q, want %q", message, got, want)
		}
	}
}

func TestFormatBytes(t *testing.T) {
	t.Parallel()
	for size, want := range map[int64]string{
		0: "0 B", 999: "999 B", 1000: "0.98 KiB", 1536: "1.50 KiB", 10 << 20: "10.0 MiB", 1 << 30: "1.00 GiB", 252 << 30: "252 GiB",
	} {
		if got := formatBytes(size); got != want {
			t.Errorf("%d: %q, want %q", size, got, want)
		}
	}
}

// TestPowersNameEveryScope checks that the approval page describes every scope.
func TestPowersNameEveryScope(t *testing.T) {
	t.Parallel()
	short := map[model.Scope]string{}
	for _, text := range scopeTexts() {
		short[text.scope] = text.short
	}
	for _, p := range model.Presets() {
		parts := 0
		for _, power := range powersOf(p) {
			parts += strings.Count(power.Text, ", ") + 1
		}
		want := 0
		for _, s := range p.Scopes() {
			want += strings.Count(short[s], ", ") + 1
			if short[s] == "" || scopeWords(s) == string(s) {
				t.Errorf("the scope %s has no words", s)
			}
		}
		if parts != want {
			t.Errorf("%s: %d parts for %d scopes", p, parts, want)
		}
	}
}

// TestCharts checks that gaps break the line, and that everything is inside the
// drawing area.
func TestCharts(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 2, 0, 0, time.UTC)
	series := model.SeriesDay()
	var samples []model.Sample
	for _, minutesAgo := range []int{600, 595, 590, 300, 10, 5, 0} {
		samples = append(samples, model.Sample{At: now.Truncate(series.Step).Add(-time.Duration(minutesAgo) * time.Minute), SizeBytes: 1 << 20, Connections: minutesAgo})
	}
	for _, c := range charts(samples, series, now) {
		if len(c.Lines) != 3 || len(c.Areas) != 3 || len(strings.Fields(c.Times)) != len(samples) || strings.Count(c.Values, ";") != len(samples)-1 {
			t.Errorf("%s: %d lines, %q at %q", c.Title, len(c.Lines), c.Values, c.Times)
		}
		for _, d := range c.Lines {
			x, y := 0, 0
			for _, move := range regexp.MustCompile(`[Mlh](-?\d+) ?(-?\d+)?`).FindAllStringSubmatch(d, -1) {
				right, _ := strconv.Atoi(move[1])
				down, _ := strconv.Atoi(move[2]) // none means 0
				if x, y = x+right, y+down; x < 0 || x > chartWidth || y < 0 || y > chartHeight {
					t.Errorf("%s: %q leads outside, to %d, %d", c.Title, move[0], x, y)
				}
			}
		}
	}
	if size := charts(samples, series, now)[1]; size.Times != "0 1 2 60 118 119 120" || size.Step != 5*time.Minute || !size.First.Equal(samples[0].At.Add(150*time.Second)) {
		t.Errorf("the times are %q from %v, each %v", size.Times, size.First, size.Step)
	}
	if charts(nil, series, now) != nil {
		t.Error("there is a chart of nothing")
	}
	samples[1].Archive = &model.ArchiveSample{WALLag: 3 << 20, RPO: 3 * time.Minute}
	all := charts(samples, series, now)
	lag, rpo := all[len(all)-2], all[len(all)-1]
	if len(lag.Lines) != 1 || lag.Values != "3.00 MiB" || lag.Latest != "unknown" || rpo.Most != "3 minutes" {
		t.Errorf("what was known once: %+v, %+v", lag, rpo)
	}
}
