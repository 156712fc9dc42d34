package engine

import (
	"bytes"
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
