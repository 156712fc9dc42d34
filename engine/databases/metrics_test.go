package databases

import (
	"sync/atomic"
	"testing"
	"time"

	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// TestMetrics samples a database for two days by a simulated clock.
func TestMetrics(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var waited atomic.Int64
	c := openRoomAt(t, func() time.Time { return start.Add(time.Duration(waited.Load())) })
	wait := func(d time.Duration) { waited.Add(int64(d)) }
	db := c.insert(t, "shop")
	commits, behind := int64(1000), int64(0)
	watch := func(d time.Duration, each int64) {
		for end := c.core.Clock().Add(d); c.core.Clock().Before(end); wait(15 * time.Second) {
			commits += each
			now := Statistics{At: c.core.Clock(), Usage: postgres.Usage{SizeBytes: commits, Connections: int(commits % 7), Commits: commits}, WALLag: behind}
			if behind > 0 {
				rpo := time.Duration(behind) * time.Millisecond
				now.RPO = &rpo
			}
			c.samples.observe(db.ID, now)
			c.KeepMetrics(false)
			c.believe()
		}
	}
	watch(48*time.Hour, 30)
	c.want(t, db.ID, model.SeriesDay(), 288)
	c.want(t, db.ID, model.SeriesMonth(), 48)
	day := c.metrics(t, db.ID, model.SeriesDay())
	for _, s := range day[1:] {
		if s.Commits < 1.99 || s.Commits > 2.01 || s.Connections != 6 {
			t.Fatalf("thirty commits in fifteen seconds: %+v", s)
		}
	}
	if last := c.metrics(t, db.ID, model.SeriesMonth())[47]; last.Commits < 1.9 || last.Commits > 2.1 || last.SizeBytes != day[len(day)-1].SizeBytes {
		t.Errorf("the last hour: %+v", last)
	}

	if day[100].Archive != nil {
		t.Errorf("nothing received the WAL, and the archive was behind by %+v", day[100].Archive)
	}
	behind = 700
	watch(time.Minute, 30)
	behind = 30
	watch(20*time.Minute, 30)
	worst := c.metrics(t, db.ID, model.SeriesMonth())
	if last := worst[len(worst)-1].Archive; last == nil || *last != (model.ArchiveSample{WALLag: 700, RPO: 700 * time.Millisecond}) {
		t.Errorf("the worst of the hour: %+v", last)
	}
	behind = 0

	commits = 0 // a new server: the counter starts over
	watch(10*time.Minute, 0)
	for _, s := range c.metrics(t, db.ID, model.SeriesDay()) {
		if s.Commits < 0 || s.Commits > 2.01 {
			t.Errorf("after the restart: %+v", s)
		}
	}

	before := len(c.metrics(t, db.ID, model.SeriesDay()))
	c.KeepMetrics(true)
	c.restart(t)
	wait(time.Minute)
	if after := len(c.metrics(t, db.ID, model.SeriesDay())); after < before-1 {
		t.Errorf("%d samples before the restart, %d after", before, after)
	}
}

func (r *room) metrics(t *testing.T, database string, series model.Series) []model.Sample {
	t.Helper()
	samples, err := r.Metrics(&model.Call{Organization: "org_1"}, database, series)
	if err != nil {
		t.Fatal(err)
	}
	return samples
}

func (r *room) want(t *testing.T, database string, series model.Series, want int) {
	t.Helper()
	samples := r.metrics(t, database, series)
	if n := len(samples); n < want-1 || n > want+1 {
		t.Errorf("%s: %d samples, want about %d", series.Name, n, want)
	}
	for i := 1; i < len(samples); i++ {
		if samples[i].At.Sub(samples[i-1].At) != series.Step {
			t.Fatalf("%s: %v follows %v", series.Name, samples[i].At, samples[i-1].At)
		}
	}
}

// believe has the service trust its clock, however far it has leapt.
func (r *room) believe() {
	r.core.Guard.Mu.Lock()
	defer r.core.Guard.Mu.Unlock()
	r.core.Guard.Believed.Time, r.core.Guard.UpdatedAt = r.core.WallClock(), time.Now()
}

// TestMetricsWhileClockIsWrong: a clock that is years ahead or behind for some minutes, or is behind for so long that it is believed,
// removes no samples, and none of its own show.
func TestMetricsWhileClockIsWrong(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var waited, wrong atomic.Int64
	c := openRoomAt(t, func() time.Time { return start.Add(time.Duration(waited.Load() + wrong.Load())) })
	db := c.insert(t, "shop")
	watch := func(d time.Duration, believed bool) {
		for end := c.core.Clock().Add(d); c.core.Clock().Before(end); waited.Add(int64(time.Minute)) {
			if believed {
				c.believe()
			}
			c.samples.observe(db.ID, Statistics{At: c.core.Clock()})
			c.KeepMetrics(false)
		}
	}
	watch(24*time.Hour, true)
	const years = 10 * 365 * 24 * time.Hour
	for _, test := range []struct {
		off      time.Duration
		believed bool
	}{{years, false}, {-years, false}, {-years, true}} {
		off := test.off
		wrong.Store(int64(off))
		watch(20*time.Minute, test.believed)
		wrong.Store(0)
		watch(10*time.Minute, true)
		for _, series := range []model.Series{model.SeriesDay(), model.SeriesMonth()} {
			samples := c.metrics(t, db.ID, series)
			if n := len(samples); time.Duration(n+14)*series.Step < 24*time.Hour {
				t.Errorf("%s: %d samples after the clock was off by %v", series.Name, n, off)
			}
			if last := samples[len(samples)-1]; last.At.After(c.core.Clock()) {
				t.Errorf("%s: a sample of %v at %v", series.Name, last.At, c.core.Clock())
			}
		}
	}
}
