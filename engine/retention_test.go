package engine

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/engine/objects"
)

// A start with shorter retentions says so, and keeps what the longer ones promised for another day.
func TestShorterRetention(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, newDataDir(t))
	by := ahead(&cfg)
	cfg.ObjectTrashRetention, cfg.BackupRetention = 720*time.Hour, 0
	a := startEngineOn(t, cfg)
	bucket := a.bucket(t, "files")
	a.mustPut(t, bucket, "k", "x")
	if err := a.deleteObject(bucket, "k"); err != nil {
		t.Fatal(err)
	}
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}

	var log bytes.Buffer
	cfg.ObjectTrashRetention, cfg.BackupRetention = 0, 168*time.Hour
	cfg.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	removal := "removal_begins=" + cfg.Clock().Add(core.RetentionGrace).UTC().Format("2006-01-02T")
	a = startEngineOn(t, cfg)
	holds := func(after time.Duration, want int) {
		t.Helper()
		by.Add(int64(after))
		believe(a.Engine)
		if err := a.sweepOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		list, err := a.Objects.TrashObjectList(a.call(model.ActionTrashObjectList), objects.TrashFilter{}, core.Page{})
		if err != nil || len(list.Items) != want {
			t.Fatalf("the trash has %+v, %v", list.Items, err)
		}
	}
	holds(0, 1)
	holds(23*time.Hour, 1)
	if kept := a.Databases.BackupRetention(model.Database{}); kept != 0 {
		t.Errorf("backups are kept %v", kept)
	}
	holds(2*time.Hour, 0)
	if kept := a.Databases.BackupRetention(model.Database{}); kept != cfg.BackupRetention {
		t.Errorf("backups are kept %v", kept)
	}
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"flag=--object-trash-retention before=720h0m0s now=0s " + removal,
		`flag=--backup-retention before="for ever" now=168h0m0s ` + removal,
	} {
		if strings.Count(log.String(), want) != 1 {
			t.Errorf("the log lacks %s:\n%s", want, log.String())
		}
	}
}

// A start with a shorter retention keeps what the longer one promised for another day, also if the clock is wrong at that
// start or at one during that day.
func TestShorterRetentionWithWrongClock(t *testing.T) {
	t.Parallel()
	const years, long = 10 * 365 * 24 * time.Hour, 720 * time.Hour
	for _, off := range [][2]time.Duration{{-years, 0}, {0, -years}, {0, years}} {
		cfg := testConfig(t, newDataDir(t))
		by := ahead(&cfg)
		start := func(retention, off time.Duration) *appliance {
			t.Helper()
			by.Store(int64(off))
			cfg.ObjectTrashRetention = retention
			a := openEngine(t, cfg)
			if err := errors.Join(a.Core.BeginRetentions(), a.Core.KeepClock()); err != nil {
				t.Fatal(err)
			}
			return a
		}
		end := func(a *appliance) {
			t.Helper()
			if err := a.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		end(start(long, 0))
		end(start(0, off[0]))
		a := start(0, off[1])
		by.Store(0)
		if kept := a.Core.ObjectTrashRetention(); kept != long {
			t.Errorf("starts with the clock off by %v: objects are kept %v, not %v, once it is right", off, kept, long)
		}
		by.Store(int64(core.RetentionGrace + time.Minute))
		believe(a.Engine)
		if kept := a.Core.ObjectTrashRetention(); kept != 0 {
			t.Errorf("starts with the clock off by %v: objects are kept %v after the grace period", off, kept)
		}
	}
}
