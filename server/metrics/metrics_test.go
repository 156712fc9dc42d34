package metrics

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"holdfast/engine"
	"holdfast/engine/advice"
	"holdfast/engine/core"
	"holdfast/engine/insight"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/offsite"
)

// scrape returns what Prometheus would get from an appliance with some activity.
func scrape(t *testing.T) string {
	t.Helper()
	e, err := engine.Open(core.Config{DataDir: t.TempDir(), AuditKeep: 100, Advice: advice.Defaults()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
	if _, err := e.Access.Initialize(false); err != nil {
		t.Fatal(err)
	}
	if err := e.Core.Meta.Update(func(tx *meta.Tx) error {
		return tx.Databases().Insert(model.Database{ID: "db_1", Name: "shop", Project: "proj_1", Organization: "org_1"})
	}); err != nil {
		t.Fatal(err)
	}
	m := New("1.2.3")
	m.Watch(e, slog.New(slog.DiscardHandler))
	m.Request(model.ActionDatabaseList, 200, 3*time.Millisecond)
	m.Event(model.Event{Type: model.EventBackupCompleted, Took: 2 * time.Second})
	m.Event(model.Event{Type: model.EventDatabaseFailed})
	answer := httptest.NewRecorder()
	m.Handler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	text, err := io.ReadAll(answer.Result().Body)
	if err != nil || answer.Code != 200 {
		t.Fatalf("%d %v %s", answer.Code, err, text)
	}
	return string(text)
}

func TestFigures(t *testing.T) {
	text := scrape(t)
	for _, line := range []string{
		`holdfast_http_requests_total{operation="database.list",status="200"} 1`,
		`holdfast_http_request_duration_seconds_count{operation="database.list"} 1`,
		`holdfast_backups_total{outcome="completed"} 1`, `holdfast_backups_total{outcome="failed"} 0`,
		`holdfast_backup_duration_seconds_sum 2`, `holdfast_database_failures_total 1`,
		`holdfast_databases{status="failed"} 0`, `holdfast_organizations 1`, `holdfast_blob_bytes{kind="backups"} 0`,
		`holdfast_build_info{version="1.2.3"} 1`, `holdfast_database_up{database="db_1",name="shop",project="proj_1"} 0`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("there is no %s in:\n%s", line, text)
		}
	}
}

// The newest trial restore from the copy off-site has a time, and says whether it failed.
func TestTrialRestoreFigures(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	for _, c := range []struct {
		restored     *offsite.Restored
		time, failed int64
	}{
		{nil, 0, 0},
		{&offsite.Restored{At: at}, at.Unix(), 0},
		{&offsite.Restored{At: at, Error: "a chunk is damaged"}, at.Unix(), 1},
	} {
		got := map[string]int64{}
		for _, f := range figures(insight.Measurement{Offsite: offsite.Status{Restored: c.restored}}) {
			got[f.name] = f.value
		}
		if got["offsite_restored_timestamp_seconds"] != c.time || got["offsite_restore_failed"] != c.failed {
			t.Errorf("%+v: %d, %d", c.restored, got["offsite_restored_timestamp_seconds"], got["offsite_restore_failed"])
		}
	}
}

// No metric has an id as a label, whose number is unbounded, except those of a database and its project: databases are
// as many as there are ports.
func TestNoIDsAreLabels(t *testing.T) {
	if id := regexp.MustCompile(`"(org|key|bucket|bkp)_[0-9a-z]`).FindString(scrape(t)); id != "" {
		t.Errorf("a label begins with %s", id)
	}
}

// The dashboard and the alert rules name only existing metrics.
func TestFilesNameMetricsThereAre(t *testing.T) {
	there := map[string]bool{}
	for _, f := range databaseFigures() { // not known of the database that was never measured
		there["holdfast_"+f.name] = true
	}
	for line := range strings.Lines(scrape(t)) {
		if !strings.HasPrefix(line, "#") {
			there[regexp.MustCompile(`^[a-z0-9_]+`).FindString(line)] = true
		}
	}
	var dashboard any
	for _, file := range []string{"grafana-dashboard.json", "prometheus-alerts.yml"} {
		text, err := os.ReadFile(filepath.Join("../../deploy", file))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, ".json") {
			if err := json.Unmarshal(text, &dashboard); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
		names := regexp.MustCompile(`\b(holdfast|go|process)_[a-z0-9_]+`).FindAllString(string(text), -1)
		if len(names) < 8 {
			t.Errorf("%s names only %v", file, names)
		}
		for _, name := range names {
			if !there[name] {
				t.Errorf("%s names %s, which there is not", file, name)
			}
		}
	}
}
