package engine

import (
	"testing"
	"time"

	"holdfast/engine/databases"
	"holdfast/engine/insight"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// TestMetrics watches a database for two days by a clock set by hand.
func TestMetrics(t *testing.T) {
	t.Parallel()
	c := openConsole(t)
	db := model.Database{ID: "db_1", Organization: c.org, Project: "proj_1", Name: "shop"}
	if err := c.Core.Meta.Update(func(tx *meta.Tx) error { return tx.Databases().Insert(db) }); err != nil {
		t.Fatal(err)
	}
	commits, behind := int64(1000), int64(0)
	watch := func(d time.Duration, each int64) {
		for end := c.Core.Clock().Add(d); c.Core.Clock().Before(end); c.wait(insight.SampleInterval) {
			commits += each
			now := databases.Statistics{At: c.Core.Clock(), SizeBytes: commits, Connections: int(commits % 7), Commits: commits, WALLag: behind}
			if behind > 0 {
				rpo := time.Duration(behind) * time.Millisecond
				now.RPO = &rpo
			}
			c.Databases.Samples.Observe(db.ID, now)
			c.Databases.KeepMetrics(false)
		}
	}
	watch(48*time.Hour, 30)
	c.want(db.ID, model.SeriesDay(), 288)
	c.want(db.ID, model.SeriesMonth(), 48)
	day := c.samples(db.ID, model.SeriesDay())
	for _, s := range day[1:] {
		if s.Commits < 1.99 || s.Commits > 2.01 || s.Connections != 6 {
			t.Fatalf("thirty commits in fifteen seconds: %+v", s)
		}
	}
	if last := c.samples(db.ID, model.SeriesMonth())[47]; last.Commits < 1.9 || last.Commits > 2.1 || last.SizeBytes != day[len(day)-1].SizeBytes {
		t.Errorf("the last hour: %+v", last)
	}

	if day[100].Archive != nil {
		t.Errorf("nothing received the WAL, and the archive was behind by %+v", day[100].Archive)
	}
	behind = 700
	watch(time.Minute, 30)
	behind = 30
	watch(20*time.Minute, 30)
	worst := c.samples(db.ID, model.SeriesMonth())
	if last := worst[len(worst)-1].Archive; last == nil || *last != (model.ArchiveSample{WALLag: 700, RPO: 700 * time.Millisecond}) {
		t.Errorf("the worst of the hour: %+v", last)
	}
	behind = 0

	commits = 0 // another server: the counter begins anew
	watch(10*time.Minute, 0)
	for _, s := range c.samples(db.ID, model.SeriesDay()) {
		if s.Commits < 0 || s.Commits > 2.01 {
			t.Errorf("after the restart: %+v", s)
		}
	}

	before := len(c.samples(db.ID, model.SeriesDay()))
	c.Databases.KeepMetrics(true)
	c.restart()
	c.wait(time.Minute)
	if after := len(c.samples(db.ID, model.SeriesDay())); after < before-1 {
		t.Errorf("%d samples before the restart, %d after", before, after)
	}
}

func (c *console) samples(database string, series model.Series) []model.Sample {
	c.t.Helper()
	samples, err := c.Databases.Metrics(c.operator(model.ActionDatabaseGet), database, series)
	if err != nil {
		c.t.Fatal(err)
	}
	return samples
}

func (c *console) want(database string, series model.Series, want int) {
	c.t.Helper()
	samples := c.samples(database, series)
	if n := len(samples); n < want-1 || n > want+1 {
		c.t.Errorf("%s: %d samples, want about %d", series.Name, n, want)
	}
	for i := 1; i < len(samples); i++ {
		if samples[i].At.Sub(samples[i-1].At) != series.Step {
			c.t.Fatalf("%s: %v follows %v", series.Name, samples[i].At, samples[i-1].At)
		}
	}
}
