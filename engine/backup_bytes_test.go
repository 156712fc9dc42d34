package engine

import (
	"context"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/blobstore"
	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/internal/testenv"
)

// du returns the disk usage of paths as du reports it, and the number of files and directories. The appliance's figure
// excludes directories and the file system's block maps: at most one block for each.
func du(t *testing.T, paths ...string) (occupied, entries int64) {
	t.Helper()
	if len(paths) == 0 {
		return 0, 0
	}
	out, err := exec.Command("du", append([]string{"-cs", "--block-size=1"}, paths...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n") // the last one is the total
	text, _, _ := strings.Cut(lines[len(lines)-1], "\t")
	if occupied, err = strconv.ParseInt(text, 10, 64); err != nil {
		t.Fatal(err)
	}
	found, err := exec.Command("find", paths...).Output()
	if err != nil {
		t.Fatal(err)
	}
	entries = int64(strings.Count(string(found), "\n"))
	return occupied, entries
}

// backupPaths returns the files of an organization's backups, WAL and exports.
func (a *appliance) backupPaths(t *testing.T) (paths []string) {
	t.Helper()
	if err := a.Core.Meta.View(func(tx *meta.Tx) error {
		return tx.Databases().All(func(db model.Database) error {
			if db.Organization != a.org {
				return nil
			}
			paths = append(paths, a.Recovery.BackupDirectory(db.ID))
			exports, err := core.AllUnder(tx.Exports(), db.ID)
			for _, x := range exports {
				if directory, name, file := strings.Cut(x.Blob, "-"); file && blobstore.Ref(x.Blob).Segment() == 0 {
					paths = append(paths, filepath.Join(a.cfg.DataDir, "blobs", "blobs", directory, name))
				}
			}
			return err
		})
	}); err != nil {
		t.Fatal(err)
	}
	return paths
}

// wantBackupBytes compares the figure with du's, minus at most one block for each file and directory. It polls: the
// archive changes meanwhile. Each time it moves the clock on, because a measurement is used for ten seconds.
func (a *appliance) wantBackupBytes(t *testing.T, by *atomic.Int64, when string) (used int64) {
	t.Helper()
	var occupied, slack int64
	deadline := time.Now().Add(20 * time.Second)
	for {
		by.Add(int64(10 * time.Second))
		usage, err := a.Insight.Usage(a.call(model.ActionUsageGet))
		if err != nil {
			t.Fatal(err)
		}
		var entries int64
		used = usage.Used(model.MetricBackupBytes)
		occupied, entries = du(t, a.backupPaths(t)...)
		if slack = entries * 4096; occupied-slack <= used && used <= occupied {
			return used
		}
		if time.Now().After(deadline) {
			t.Errorf("%s: backup_bytes is %d, and du says %d (within %d below)", when, used, occupied, slack)
			return used
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// TestBackupBytes: the figure is the disk usage of backups, WAL and exports, whatever was created and removed, even
// after a restart.
func TestBackupBytes(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	cfg := exporting(t)
	by := ahead(&cfg)
	cfg.BackupRetention = 7 * 24 * time.Hour
	a := startEngineOn(t, cfg)
	other := a.inAnotherOrganization(t, "other")
	db, c := a.createDatabase(t, "shop")
	run(t, c, "create table t as select n, md5(n::text) || md5((n + 1)::text) as text from generate_series(1, 200000) n")
	first := a.backUp(t, db.ID)
	export := a.awaitExport(t, db.ID, "")
	a.wantBackupBytes(t, by, "after the first backup")
	run(t, c, "update t set text = md5(text) where n % 2 = 0")
	a.asSuperuser(t, db.ID, "select pg_switch_wal()")
	a.backUp(t, db.ID)
	export = a.awaitExport(t, db.ID, export.ID)
	a.wantBackupBytes(t, by, "after the second, an export replaced")
	run(t, c, "update t set text = md5(text) where n % 3 = 0")
	third := a.backUp(t, db.ID)
	a.awaitExport(t, db.ID, export.ID)
	before := a.wantBackupBytes(t, by, "after the third")
	if err := a.Recovery.BackupDelete(a.call(model.ActionBackupDelete), db.ID, first.ID); err != nil {
		t.Fatal(err)
	}
	if after := a.wantBackupBytes(t, by, "after a backup and its WAL were deleted"); after >= before {
		t.Errorf("deleting freed nothing: %d bytes, then %d", before, after)
	}
	by.Add(int64(8 * 24 * time.Hour))
	believe(a.Engine)
	testenv.Within(t, time.Minute, "the second backup to expire", func() bool {
		if err := a.sweepOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		return len(a.backups(t, db.ID)) == 1
	})
	a.wantBackupBytes(t, by, "after a backup expired")
	a.restore(t, db.ID, third.ID)
	a.awaitIdle(t)
	a.wantBackupBytes(t, by, "after a restore")
	gone, _ := a.createDatabase(t, "gone")
	a.backUp(t, gone.ID)
	a.awaitExport(t, gone.ID, "")
	if _, err := a.Databases.Delete(t.Context(), a.call(model.ActionDatabaseDelete), gone.ID); err != nil {
		t.Fatal(err)
	}
	with := a.wantBackupBytes(t, by, "with a database in the trash")
	if err := a.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	next := a.reopen(t)
	next.wantBackupBytes(t, by, "after a restart")
	if _, err := next.TrashEmpty(next.call(model.ActionTrashEmpty)); err != nil {
		t.Fatal(err)
	}
	if without := next.wantBackupBytes(t, by, "after the trash was emptied"); without >= with {
		t.Errorf("emptying the trash freed nothing: %d bytes, then %d", with, without)
	}
	usage, err := next.Insight.Usage(other.call(model.ActionUsageGet))
	if used := usage.Used(model.MetricBackupBytes); err != nil || used != 0 {
		t.Errorf("another organization's backup_bytes: %d, %v", used, err)
	}
}
