package backup

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestReadShutdown compares with what pg_controldata says.
func TestReadShutdown(t *testing.T) {
	c := newCluster(t)
	if s, err := ReadShutdown(c.dir); !errors.Is(err, ErrNotShutDown) {
		t.Errorf("of one that runs: %+v, %v", s, err)
	}
	c.stop()
	said := map[string]string{}
	for line := range strings.Lines(run(t, pgTool(t, "pg_controldata", c.dir))) {
		name, value, _ := strings.Cut(line, ":")
		said[name] = strings.TrimSpace(value)
	}
	got, err := ReadShutdown(c.dir)
	want := said["Latest checkpoint location"] + " on " + said["Latest checkpoint's TimeLineID"]
	if fmt.Sprintf("%v on %d", got.Checkpoint, got.Timeline) != want || err != nil {
		t.Errorf("%+v, %v, want %s", got, err, want)
	}
	c.start()
	c.crash()
	if s, err := ReadShutdown(c.dir); !errors.Is(err, ErrNotShutDown) {
		t.Errorf("of one that crashed: %+v, %v", s, err)
	}
}
