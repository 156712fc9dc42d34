package backup

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"holdfast/engine/postgres/postgrestest"
)

// TestReadShutdown compares the result with pg_controldata.
func TestReadShutdown(t *testing.T) {
	c := newCluster(t)
	if s, err := ReadShutdown(c.Dir); !errors.Is(err, ErrNotShutDown) {
		t.Errorf("of one that runs: %+v, %v", s, err)
	}
	c.Stop()
	said := map[string]string{}
	for line := range strings.Lines(postgrestest.Run(t, pgTool(t, "pg_controldata", c.Dir))) {
		name, value, _ := strings.Cut(line, ":")
		said[name] = strings.TrimSpace(value)
	}
	got, err := ReadShutdown(c.Dir)
	want := said["Latest checkpoint location"] + " on " + said["Latest checkpoint's TimeLineID"]
	if fmt.Sprintf("%v on %d", got.Checkpoint, got.Timeline) != want || err != nil {
		t.Errorf("%+v, %v, want %s", got, err, want)
	}
	c.Start()
	c.Crash()
	if s, err := ReadShutdown(c.Dir); !errors.Is(err, ErrNotShutDown) {
		t.Errorf("of one that crashed: %+v, %v", s, err)
	}
}
