package engine

import (
	"fmt"
	"testing"
	"time"

	"holdfast/engine/access"
	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/objects"
)

// otherReads are requests that do not concern objects.
func (a *appliance) otherReads() map[string]func() error {
	return map[string]func() error{
		"databases": func() error {
			_, err := a.Databases.List(a.call(model.ActionDatabaseList), databases.Filter{}, core.Page{})
			return err
		},
		"keys": func() error {
			_, err := a.Access.KeyList(a.call(model.ActionKeyList), access.KeyFilter{}, core.Page{})
			return err
		},
		"projects": func() error {
			_, err := a.Access.ProjectList(a.call(model.ActionProjectList), core.Filter{}, core.Page{})
			return err
		},
		"people": func() error {
			_, err := a.Access.UserList(a.call(model.ActionUserList), access.UserFilter{}, core.Page{})
			return err
		},
		"trash": func() error {
			_, err := a.Databases.TrashList(a.call(model.ActionTrashList), core.Filter{}, core.Page{})
			return err
		},
		"readiness": func() error {
			if err := a.Insight.Ready(); err != nil && err.Error() != "starting" { // the engine stores only objects
				return err
			}
			return nil
		},
	}
}

// addDatabases creates n records of databases.
func (a *appliance) addDatabases(t testing.TB, n int) {
	t.Helper()
	if err := a.Core.Meta.Update(func(tx *meta.Tx) error { return a.fillAccount(tx, n, 1) }); err != nil {
		t.Fatal(err)
	}
}

// holdCommits blocks the commits of metadata transactions until release is called.
func (a *appliance) holdCommits(t testing.TB) (release func()) {
	t.Helper()
	held, released, done := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		done <- a.Core.Meta.Update(func(*meta.Tx) error {
			close(held)
			<-released
			return nil
		})
	}()
	<-held
	return func() {
		close(released)
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// While no metadata transaction can commit, objects are uploaded and read, and reads of everything else succeed.
func TestOtherReadsDoNotWaitForUploads(t *testing.T) {
	t.Parallel()
	a := openEngine(t, testConfig(t, newDataDir(t)))
	bucket := a.bucket(t, "files")
	a.addDatabases(t, 10)
	release := a.holdCommits(t)
	defer release()
	for name, read := range a.otherReads() {
		a.mustPut(t, bucket, name, name)
		if err := read(); err != nil { // otherwise the test times out
			t.Errorf("%s: %v", name, err)
		}
		if _, err := a.Objects.ObjectGet(a.call(model.ActionObjectGet), bucket, name); err != nil {
			t.Errorf("the object: %v", err)
		}
	}
}

// Every read sees what was acknowledged before it.
func TestReadsSeeWhatWasAcknowledged(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, newDataDir(t))
	cfg.ObjectTrashRetention = time.Hour
	a := openEngine(t, cfg)
	bucket := a.bucket(t, "files")
	uploads, deletes := int64(0), int64(0)
	counts := map[string]func() (int64, error){
		"objects listed": func() (int64, error) {
			list, err := a.Objects.ObjectList(a.call(model.ActionObjectList), bucket, "", core.Page{Limit: core.MaxLimit})
			return int64(len(list.Items)), err
		},
		"objects in a folder": func() (int64, error) {
			list, err := a.Objects.ObjectFolder(a.call(model.ActionObjectList), bucket, "", "/", core.Page{Limit: core.MaxLimit})
			return int64(len(list.Items)), err
		},
		"objects of the bucket": func() (int64, error) {
			b, err := a.Objects.BucketGet(a.call(model.ActionBucketGet), bucket)
			return b.ObjectCount, err
		},
		"objects of the buckets": func() (n int64, err error) {
			list, err := a.Objects.BucketList(a.call(model.ActionBucketList), objects.BucketFilter{}, core.Page{})
			for _, b := range list.Items {
				n += b.ObjectCount
			}
			return n, err
		},
		"objects of the organization": func() (int64, error) {
			account, err := a.Access.AccountGet(a.call(model.ActionUsageGet))
			return account.Totals.Objects, err
		},
		"objects of the appliance": func() (int64, error) {
			m, err := a.Insight.Measure()
			return m.Totals.Objects, err
		},
		"objects but for those in the trash": func() (int64, error) {
			list, err := a.Objects.TrashObjectList(a.call(model.ActionTrashObjectList), objects.TrashFilter{}, core.Page{Limit: core.MaxLimit})
			return uploads - int64(len(list.Items)), err
		},
		"audited uploads but for deletions": func() (n int64, err error) {
			entries, _, err := a.Core.AuditList(a.call(model.ActionAuditList), core.AuditFilter{}, 1, core.MaxLimit)
			for _, e := range entries {
				switch e.Action {
				case model.ActionObjectUpload:
					n++
				case model.ActionObjectDelete:
					n--
				}
			}
			return n, err
		},
	}
	check := func(name string, read func() (int64, error)) {
		t.Helper()
		if got, err := read(); err != nil || got != uploads-deletes {
			t.Errorf("%s: %d of %d, %v", name, got, uploads-deletes, err)
		}
	}
	for name, read := range counts {
		a.mustPut(t, bucket, name, "x")
		uploads++
		check(name, read)
		a.mustPut(t, bucket, name+" for now", "x")
		uploads++
		if err := a.deleteObject(bucket, name+" for now"); err != nil {
			t.Fatal(err)
		}
		deletes++
		check(name, read)
	}
	for i := range 10 {
		if _, err := a.Access.ProjectCreate(a.call(model.ActionProjectCreate), fmt.Sprint("project-", i)); err != nil {
			t.Fatal(err)
		}
		list, err := a.Access.ProjectList(a.call(model.ActionProjectList), core.Filter{}, core.Page{})
		if err != nil || len(list.Items) != i+2 {
			t.Errorf("%d of %d projects, %v", len(list.Items), i+2, err)
		}
	}
}

// BenchmarkReadsDuringUploads reports how many commits a read of each kind
// waits for while objects are uploaded.
func BenchmarkReadsDuringUploads(b *testing.B) {
	a := openEngine(b, testConfig(b, newDataDir(b)))
	bucket := a.bucket(b, "files")
	a.addDatabases(b, 10)
	for name, read := range a.otherReads() {
		b.Run(name, func(b *testing.B) {
			commits := uint64(0)
			for i := range b.N {
				a.mustPut(b, bucket, fmt.Sprint(i), "x")
				before, err := a.Core.Meta.Commits()
				if err != nil {
					b.Fatal(err)
				}
				if err := read(); err != nil {
					b.Fatal(err)
				}
				after, err := a.Core.Meta.Commits()
				if err != nil {
					b.Fatal(err)
				}
				commits += after - before
			}
			b.ReportMetric(float64(commits)/float64(b.N), "commits/read")
		})
	}
}
