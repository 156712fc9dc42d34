package engine

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/model"
	"holdfast/engine/objects"
	"holdfast/engine/offsite"
	"holdfast/internal/objectstore/objectstoretest"
	"holdfast/internal/testenv"
)

const offsitePassphrase = "correct horse"

// offsiteAt returns the configuration of a copy in a prefix that it prepares.
func offsiteAt(t testing.TB, url string) core.Offsite {
	t.Helper()
	keys, err := offsite.ParsePassphrases(offsitePassphrase)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := offsite.Initialize(t.Context(), offsite.Location{URL: url, Keys: keys}, nil, time.Now()); err != nil {
		t.Fatal(err)
	}
	return core.Offsite{URL: url, Passphrases: model.NewSecret(offsitePassphrase), Interval: 100 * time.Millisecond}
}

// startCopied starts an engine with a copy off-site.
func startCopied(t testing.TB, o core.Offsite) *appliance {
	t.Helper()
	cfg := testConfig(t, newDataDir(t))
	cfg.Offsite = o
	return startEngineOn(t, cfg)
}

// awaitOffsite waits until the copy is in a state.
func (a *appliance) awaitOffsite(t testing.TB, state model.OffsiteState) offsite.Status {
	t.Helper()
	var last offsite.Status
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the copy is %+v", last)
		}
	})
	testenv.Within(t, time.Minute, "the copy to be "+string(state), func() bool {
		last = a.Offsite.Status()
		return last.State == state
	})
	return last
}

// awaitCaughtUp waits until the copy has all that happened before the call.
func (a *appliance) awaitCaughtUp(t testing.TB) {
	t.Helper()
	began := time.Now()
	testenv.Within(t, time.Minute, "the copy to have everything", func() bool {
		st := a.Offsite.Status()
		return st.State == model.OffsiteCopying && st.Point.After(began)
	})
}

func TestOffsiteInDirectory(t *testing.T) {
	t.Parallel()
	o := offsiteAt(t, "file://"+t.TempDir())
	a := startCopied(t, o)
	a.awaitOffsite(t, model.OffsiteCopying)
	_, connection := a.createDatabase(t, "shop")
	a.awaitCaughtUp(t)

	// Killed and started again: the same machine goes on.
	killed, cancel := context.WithCancel(t.Context())
	cancel()
	a.Offsite.Close(killed)
	a.abandon(t)
	a = a.reopen(t)
	a.awaitOffsite(t, model.OffsiteCopying)

	// Another machine takes over: this one is read-only in everything.
	other := testConfig(t, newDataDir(t))
	other.Offsite = o
	if err := (offsite.State{Format: 1, TakeOver: true}).Write(other.DataDir); err != nil {
		t.Fatal(err)
	}
	b := startEngineOn(t, other)
	b.awaitOffsite(t, model.OffsiteCopying)
	a.awaitOffsite(t, model.OffsiteFenced)
	a.wantReadOnly(t, connection)

	// It stays so after a restart, with its databases.
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	a = a.reopen(t)
	a.awaitOffsite(t, model.OffsiteFenced)
	a.wantReadOnly(t, connection)

	// The operator can have it go on. Then the other one is fenced.
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := offsite.TakeOver(a.cfg.DataDir); err != nil {
		t.Fatal(err)
	}
	a = a.reopen(t)
	a.awaitOffsite(t, model.OffsiteCopying)
	b.awaitOffsite(t, model.OffsiteFenced)
	if _, err := a.Objects.BucketCreate(a.call(model.ActionBucketCreate), objects.NewBucket{Project: a.project, Name: "files"}); err != nil {
		t.Errorf("make a bucket after going on: %v", err)
	}
}

// wantReadOnly expects that neither the API nor a database takes a change.
func (a *appliance) wantReadOnly(t testing.TB, connection databases.Connection) {
	t.Helper()
	_, err := a.Objects.BucketCreate(a.call(model.ActionBucketCreate), objects.NewBucket{Project: a.project, Name: "late"})
	if model.CodeOf(err) != model.CodeReadOnly {
		t.Errorf("making a bucket on a fenced machine: %v, want %s", err, model.CodeReadOnly)
	}
	if err := a.Insight.Ready(); err == nil || !strings.Contains(err.Error(), "because another machine took over") {
		t.Errorf("a fenced machine is ready: %v", err)
	}
	call := a.call(model.ActionObjectUpload)
	call.Operation = model.OperationFor(model.ActionObjectUpload)
	if err := a.Access.Authorize(call); model.CodeOf(err) != model.CodeReadOnly {
		t.Errorf("an upload to a fenced machine: %v, want %s", err, model.CodeReadOnly)
	}
	call.Operation = model.OperationFor(model.ActionDatabaseList)
	if err := a.Access.Authorize(call); err != nil {
		t.Errorf("a list of a fenced machine: %v", err)
	}
	testenv.Within(t, time.Minute, "a read-only database", func() bool {
		conn, err := pgx.Connect(t.Context(), connection.URL())
		if err != nil {
			return false
		}
		defer conn.Close(context.Background())
		_, err = conn.Exec(t.Context(), "CREATE TABLE late (n int)")
		return err != nil
	})
}

// A prefix that another machine copies to is refused, and nothing else suffers.
func TestOffsiteOfAnotherMachine(t *testing.T) {
	t.Parallel()
	o := offsiteAt(t, "file://"+filepath.Clean(t.TempDir()))
	startCopied(t, o).awaitOffsite(t, model.OffsiteCopying)
	b := startCopied(t, o)
	b.awaitOffsite(t, model.OffsiteFailing)
	if _, err := b.Objects.BucketCreate(b.call(model.ActionBucketCreate), objects.NewBucket{Project: b.project, Name: "files"}); err != nil {
		t.Errorf("make a bucket: %v", err)
	}
}

// The store goes away, refuses the credentials and comes back; the appliance works on. All that is the proxy's doing, so
// one server is enough.
func TestOffsiteStoreAway(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	server := objectstoretest.Servers(t)[0]
	proxy := objectstoretest.NewProxy(t, server.URL)
	useStore(t, server.Environment(proxy.URL))
	a := startCopied(t, offsiteAt(t, "s3://"+server.Bucket(t, false)+"/appliance"))
	a.awaitOffsite(t, model.OffsiteCopying)
	for what, act := range map[string]objectstoretest.Act{
		"outage": objectstoretest.Reset(), "revoked": objectstoretest.Denied(), "full": objectstoretest.Full(),
	} {
		proxy.Inject(objectstoretest.Fault{Act: act})
		if _, err := a.Objects.BucketCreate(a.call(model.ActionBucketCreate), objects.NewBucket{Project: a.project, Name: what}); err != nil {
			t.Fatalf("make a bucket during %s: %v", what, err)
		}
		a.Offsite.CheckpointSoon()
		if st := a.awaitOffsite(t, model.OffsiteFailing); st.Problem == "" {
			t.Errorf("the status during %s names no problem: %+v", what, st)
		}
		proxy.Clear()
		a.awaitOffsite(t, model.OffsiteCopying)
	}
	proxy.Inject(objectstoretest.Fault{Act: objectstoretest.Silence()})
	began := time.Now()
	if err := a.Close(t.Context()); err != nil {
		t.Error(err)
	}
	t.Logf("closed in %s without the store", time.Since(began))
}

// useStore sets the variables of a store for the process: no other test of this package has one. t.Setenv would keep the
// test, which mostly waits, from running beside others.
func useStore(t *testing.T, environment objectstoretest.Environment) {
	t.Helper()
	for name, value := range environment {
		before, was := os.LookupEnv(name)
		if err := os.Setenv(name, value); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if was {
				os.Setenv(name, before)
			} else {
				os.Unsetenv(name)
			}
		})
	}
}

// A database is restored from the copy alone, without its own backups.
func TestOffsiteTrialRestore(t *testing.T) {
	t.Parallel()
	a := startCopied(t, offsiteAt(t, "file://"+t.TempDir()))
	db, connection := a.createDatabase(t, "shop")
	if _, err := connect(t, connection).Exec(t.Context(), "CREATE TABLE n AS SELECT generate_series(1, 10000) AS n"); err != nil {
		t.Fatal(err)
	}
	backup := a.backUp(t, db.ID)
	testenv.Within(t, time.Minute, "a checkpoint with the backup", func() bool {
		st := a.Offsite.Status()
		a.Offsite.CheckpointSoon()
		return st.Checkpoint != nil && st.Checkpoint.After(*backup.CompletedAt)
	})
	own := filepath.Join(a.cfg.DataDir, "backups", db.ID, "repository")
	if err := os.Rename(own, own+".away"); err != nil {
		t.Fatal(err)
	}
	result, err := a.Offsite.VerifyRestore(t.Context())
	if err != nil || result.Error != "" || result.Database != db.ID {
		t.Errorf("the trial restore: %+v, %v", result, err)
	}
	if st := a.Offsite.Status(); st.Restored == nil || st.Restored.Database != db.ID {
		t.Errorf("the status says %+v", st.Restored)
	}
	if st, err := a.Offsite.StatusFor(db.Organization); err != nil || st.Restored == nil || st.Restored.Name != "shop" {
		t.Errorf("its organization sees %+v, %v", st.Restored, err)
	}
	if st, err := a.Offsite.StatusFor("org_other"); err != nil || st.Restored == nil || st.Restored.Name+st.Restored.Database != "" {
		t.Errorf("another organization sees %+v, %v", st.Restored, err)
	}
	if left, err := os.ReadDir(filepath.Join(a.cfg.DataDir, "verification")); err != nil || len(left) > 0 {
		t.Errorf("left of the trial: %v, %v", left, err)
	}
	if err := os.Rename(own+".away", own); err != nil {
		t.Fatal(err)
	}
}
