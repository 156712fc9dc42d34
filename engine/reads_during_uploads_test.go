package engine

import (
	"fmt"
	"testing"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// otherReads are requests that do not concern objects.
func (s *store) otherReads() map[string]func() error {
	return map[string]func() error{
		"databases": func() error { _, err := s.Databases.List(s.call(model.ActionDatabaseList), core.Page{}); return err },
		"keys":      func() error { _, err := s.Access.KeyList(s.call(model.ActionKeyList), core.Page{}); return err },
		"projects":  func() error { _, err := s.Access.ProjectList(s.call(model.ActionProjectList), core.Page{}); return err },
		"people":    func() error { _, err := s.Access.UserList(s.call(model.ActionUserList), core.Page{}); return err },
		"trash":     func() error { _, err := s.Databases.TrashList(s.call(model.ActionTrashList)); return err },
		"readiness": func() error {
			if err := s.Insight.Ready(); err != nil && err.Error() != "starting" { // the engine stores only objects
				return err
			}
			return nil
		},
	}
}

// addDatabases creates n records of databases.
func (s *store) addDatabases(t testing.TB, n int) {
	t.Helper()
	a := &appliance{Engine: s.Engine, org: s.org, project: s.project}
	if err := s.Core.Meta.Update(func(tx *meta.Tx) error { return a.fillAccount(tx, n, 1) }); err != nil {
		t.Fatal(err)
	}
}

// holdCommits blocks the commits of metadata transactions until release is called.
func (s *store) holdCommits(t testing.TB) (release func()) {
	t.Helper()
	held, released, done := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		done <- s.Core.Meta.Update(func(*meta.Tx) error {
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
	s := openObjects(t)
	bucket := s.bucket(t, "files")
	s.addDatabases(t, 10)
	release := s.holdCommits(t)
	defer release()
	for name, read := range s.otherReads() {
		s.mustPut(t, bucket, name, name)
		if err := read(); err != nil { // otherwise the test times out
			t.Errorf("%s: %v", name, err)
		}
		if _, err := s.Objects.ObjectGet(s.call(model.ActionObjectGet), bucket, name); err != nil {
			t.Errorf("the object: %v", err)
		}
	}
}

// Every read sees what was acknowledged before it.
func TestReadsSeeWhatWasAcknowledged(t *testing.T) {
	t.Parallel()
	s := openObjects(t, func(c *core.Config) { c.ObjectTrashRetention = time.Hour })
	bucket := s.bucket(t, "files")
	uploads, deletes := int64(0), int64(0)
	counts := map[string]func() (int64, error){
		"objects listed": func() (int64, error) {
			list, err := s.Objects.ObjectList(s.call(model.ActionObjectList), bucket, "", core.Page{Limit: core.MaxLimit})
			return int64(len(list.Items)), err
		},
		"objects in a folder": func() (int64, error) {
			list, err := s.Objects.ObjectFolder(s.call(model.ActionObjectList), bucket, "", "/", core.Page{Limit: core.MaxLimit})
			return int64(len(list.Items)), err
		},
		"objects of the bucket": func() (int64, error) {
			b, err := s.Objects.BucketGet(s.call(model.ActionBucketGet), bucket)
			return b.ObjectCount, err
		},
		"objects of the buckets": func() (n int64, err error) {
			list, err := s.Objects.BucketList(s.call(model.ActionBucketList), core.Page{})
			for _, b := range list.Items {
				n += b.ObjectCount
			}
			return n, err
		},
		"objects of the organization": func() (int64, error) {
			a, err := s.Access.AccountGet(s.call(model.ActionUsageGet))
			return a.Totals.Objects, err
		},
		"objects of the appliance": func() (int64, error) {
			m, err := s.Insight.Measure()
			return m.Totals.Objects, err
		},
		"objects but for those in the trash": func() (int64, error) {
			list, err := s.Objects.TrashObjectList(s.call(model.ActionTrashObjectList), core.Page{Limit: core.MaxLimit})
			return uploads - int64(len(list.Items)), err
		},
		"audited uploads but for deletions": func() (n int64, err error) {
			entries, _, err := s.Core.AuditList(s.call(model.ActionAuditList), core.AuditFilter{}, 1, core.MaxLimit)
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
		s.mustPut(t, bucket, name, "x")
		uploads++
		check(name, read)
		s.mustPut(t, bucket, name+" for now", "x")
		uploads++
		if err := s.delete(bucket, name+" for now"); err != nil {
			t.Fatal(err)
		}
		deletes++
		check(name, read)
	}
	for i := range 10 {
		if _, err := s.Access.ProjectCreate(s.call(model.ActionProjectCreate), fmt.Sprint("project-", i)); err != nil {
			t.Fatal(err)
		}
		list, err := s.Access.ProjectList(s.call(model.ActionProjectList), core.Page{})
		if err != nil || len(list.Items) != i+2 {
			t.Errorf("%d of %d projects, %v", len(list.Items), i+2, err)
		}
	}
}

// BenchmarkReadsDuringUploads reports how many commits a read of each kind
// waits for while objects are uploaded.
func BenchmarkReadsDuringUploads(b *testing.B) {
	s := openObjects(b)
	bucket := s.bucket(b, "files")
	s.addDatabases(b, 10)
	for name, read := range s.otherReads() {
		b.Run(name, func(b *testing.B) {
			commits := uint64(0)
			for i := range b.N {
				s.mustPut(b, bucket, fmt.Sprint(i), "x")
				before, err := s.Core.Meta.Commits()
				if err != nil {
					b.Fatal(err)
				}
				if err := read(); err != nil {
					b.Fatal(err)
				}
				after, err := s.Core.Meta.Commits()
				if err != nil {
					b.Fatal(err)
				}
				commits += after - before
			}
			b.ReportMetric(float64(commits)/float64(b.N), "commits/read")
		})
	}
}
