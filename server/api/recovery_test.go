package api

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"holdfast/backup/wal/xlog"
	"holdfast/server/api/wire"
)

// backedUp creates a database with a backup.
func (w *world) backedUp(t *testing.T) (wire.CreatedDatabase, wire.Backup) {
	t.Helper()
	db := w.createDatabase(t, `{"project":"`+w.org.project+`","name":"shop"}`)
	path := "/databases/" + db.ID + "/backups"
	rec := func() wire.Recovery {
		return get[wire.Recovery](t, w.do(t, request{method: "GET", path: "/databases/" + db.ID + "/recovery", key: w.org.full}))
	}
	if r := rec(); r.PITREnabled || !r.WALArchiving.Enabled || r.Status != wire.RecoveryWaiting {
		t.Errorf("before the first backup: %+v", r)
	}
	b := get[wire.Backup](t, w.do(t, request{method: "POST", path: path, key: w.org.full}))
	if b.Status != wire.BackupPending || b.Type != wire.BackupManual {
		t.Errorf("the answer to POST: %+v", b)
	}
	defer func() {
		if r := rec(); !r.PITREnabled {
			t.Errorf("after the first backup: %+v", r)
		}
	}()
	return db, await(t, func() (wire.Backup, bool) {
		b := get[wire.Backup](t, w.do(t, request{method: "GET", path: path + "/" + b.ID, key: w.org.full}))
		return b, b.Status == wire.BackupCompleted
	})
}

// askRestore requests a restore with the given JSON fields.
func (w *world) askRestore(t *testing.T, database, fields string) reply {
	t.Helper()
	return w.do(t, request{
		method: "POST", path: "/databases/" + database + "/recovery/restore-request", key: w.org.full, body: "{" + fields + "}",
	})
}

func targetTime(at time.Time) string {
	return fmt.Sprintf(`"target_time":%q`, at.Format(time.RFC3339Nano))
}

// Each returned time can be requested, and refers to the same state.
func TestAnsweredTimesCanBeRestored(t *testing.T) {
	w := start(t)
	db, b := w.backedUp(t)
	plan := func(what string, at *time.Time) wire.RestorePlan {
		t.Helper()
		if at == nil {
			t.Fatalf("%s: no time", what)
		}
		got := w.askRestore(t, db.ID, `"dry_run":true,`+targetTime(*at))
		if got.status != 200 {
			t.Errorf("%s: %d %s", what, got.status, got.text)
			return wire.RestorePlan{}
		}
		if e := w.entry(t, w.org.organization, got.header.Get("X-Request-Id")); e.Resource.ID != db.ID || e.Details["dry_run"] != "true" {
			t.Errorf("audited as of %+v, %v", e.Resource, e.Details)
		}
		return get[wire.RestorePlan](t, got)
	}
	exec(t, db.Credentials.ConnectionURL, "create table t (i int)")
	written := time.Now()
	r := await(t, func() (wire.Recovery, bool) {
		r := get[wire.Recovery](t, w.do(t, request{method: "GET", path: "/databases/" + db.ID + "/recovery", key: w.org.full}))
		return r, r.LatestRestorableTime.After(written)
	})
	plan("the end of the backup", b.CompletedAt)
	plan("the earliest", r.EarliestRestorableTime)
	latest := plan("the latest", r.LatestRestorableTime)
	if again := plan("the last commit", latest.TargetTime); again.TargetLSN != latest.TargetLSN || !again.TargetTime.Equal(*latest.TargetTime) {
		t.Errorf("the last commit's time, %v, means %+v, not %+v", latest.TargetTime, again, latest)
	}
	for _, event := range r.Timeline {
		plan("the "+string(event.Type), &event.At)
	}
	asked := w.askRestore(t, db.ID, `"mode":"new","name":"by_time",`+targetTime(*r.LatestRestorableTime))
	op := get[wire.Operation](t, asked)
	if e := w.entry(t, w.org.organization, asked.header.Get("X-Request-Id")); e.Resource.ID != db.ID || e.Details["new_database"] != *op.NewDatabaseID || e.Details["dry_run"] != "" {
		t.Errorf("audited as of %+v, %v", e.Resource, e.Details)
	}
	if op.TargetTime == nil || !op.TargetTime.Equal(*r.LatestRestorableTime) || op.TargetLSN != nil {
		t.Errorf("the operation is to %v, %v", op.TargetTime, op.TargetLSN)
	}
	w.awaitAvailable(t, "/databases/"+*op.NewDatabaseID)
	if again := plan("the operation's", op.TargetTime); again.TargetLSN != latest.TargetLSN {
		t.Errorf("the operation's time means %+v, not %+v", again, latest)
	}
	op = get[wire.Operation](t, w.askRestore(t, db.ID, `"mode":"new","name":"by_lsn","target_lsn":"`+latest.TargetLSN+`"`))
	if op.TargetTime != nil || text(op.TargetLSN) != latest.TargetLSN {
		t.Errorf("the operation is to %v, %v", op.TargetTime, op.TargetLSN)
	}
	w.awaitAvailable(t, "/databases/"+*op.NewDatabaseID)
}

// A point that cannot be restored is rejected with the window in the message, whose ends can be restored.
func TestPointsOutsideTheWindow(t *testing.T) {
	w := start(t)
	db, b := w.backedUp(t)
	stop, err := xlog.ParseLSN(*b.StopLSN)
	if err != nil {
		t.Fatal(err)
	}
	for _, point := range []string{"0/1", *b.StartLSN, (stop - 1).String(), "FFFFFFFF/FFFFFFFF"} {
		got := w.askRestore(t, db.ID, fmt.Sprintf(`"dry_run":true,"target_lsn":%q`, point))
		ends := regexp.MustCompile(`from ([0-9A-F]+/[0-9A-F]+) to ([0-9A-F]+/[0-9A-F]+)$`).FindStringSubmatch(got.msg)
		if got.status != 422 || !strings.HasPrefix(got.msg, "target_lsn: ") || ends == nil || ends[1] != *b.StopLSN {
			t.Errorf("%s: %d %s", point, got.status, got.msg)
			continue
		}
		for _, end := range ends[1:] {
			get[wire.RestorePlan](t, w.askRestore(t, db.ID, fmt.Sprintf(`"dry_run":true,"target_lsn":%q`, end)))
		}
	}
	for _, at := range []string{
		"0001-01-01T00:00:00Z", "0001-01-01T02:00:00+02:00", "0001-01-01T00:00:00.000000001Z", "0000-01-01T00:00:00Z", "0000-01-01T00:00:00+23:59",
		"1969-12-31T23:59:59Z", "1999-12-31T23:59:59Z", "2000-01-01T00:00:00Z", "2038-01-19T03:14:08Z", "9999-12-31T23:59:59.999999999Z", "9999-12-31T23:59:59-23:59",
	} {
		got := w.askRestore(t, db.ID, fmt.Sprintf(`"target_time":%q`, at))
		if got.status != 422 || !strings.HasPrefix(got.msg, "target_time: ") || !strings.Contains(got.msg, " lies outside of what can be restored, which is from ") {
			t.Errorf("%s: %d %s", at, got.status, got.msg)
		}
	}
}
