package engine

import (
	"fmt"
	"testing"
	"time"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// otherReads are requests about something other than objects.
func (s *store) otherReads() map[string]func() error {
	return map[string]func() error{
		"databases": func() error { _, err := s.DatabaseList(s.call(model.ActionDatabaseList), Page{}); return err },
		"keys":      func() error { _, err := s.KeyList(s.call(model.ActionKeyList), Page{}); return err },
		"projects":  func() error { _, err := s.ProjectList(s.call(model.ActionProjectList), Page{}); return err },
		"people":    func() error { _, err := s.UserList(s.call(model.ActionUserList), Page{}); return err },
		"trash":     func() error { _, err := s.TrashList(s.call(model.ActionTrashList)); return err },
		"readiness": func() error {
			if err := s.Ready(); err != nil && err.Error() != "starting" { // it keeps objects only
				return err
			}
			return nil
		},
	}
}

// addDatabases makes n records of databases.
func (s *store) addDatabases(t testing.TB, n int) {
	t.Helper()
	a := &appliance{Engine: s.Engine, org: s.org, project: s.project}
	if err := s.meta.Update(func(tx *meta.Tx) error { return a.fillAccount(tx, n, 1) }); err != nil {
		t.Fatal(err)
	}
}

// holdCommits lets no transaction of the metadata end until release is called.
func (s *store) holdCommits(t testing.TB) (release func()) {
	t.Helper()
	held, released, done := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		done <- s.meta.Update(func(*meta.Tx) error {
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

// While no transaction of the metadata ends, objects are uploaded and read, and
// everything that is not about objects is read.
func TestOtherReadsDoNotWaitForUploads(t *testing.T) {
	t.Parallel()
	s := openObjects(t)
	bucket := s.bucket(t, "files")
	s.addDatabases(t, 10)
	release := s.holdCommits(t)
	defer release()
	for name, read := range s.otherReads() {
		s.mustPut(t, bucket, name, name)
		if err := read(); err != nil { // or the test times out
			t.Errorf("%s: %v", name, err)
		}
		if _, err := s.ObjectGet(s.call(model.ActionObjectGet), bucket, name); err != nil {
			t.Errorf("the object: %v", err)
		}
	}
}

// What was acknowledged is in every answer that follows.
func TestReadsSeeWhatWasAcknowledged(t *testing.T) {
	t.Parallel()
	s := openObjects(t, func(c *Config) { c.ObjectTrashRetention = time.Hour })
	bucket := s.bucket(t, "files")
	uploads, deletes := int64(0), int64(0)
	counts := map[string]func() (int64, error){
		"objects listed": func() (int64, error) {
			list, err := s.ObjectList(s.call(model.ActionObjectList), bucket, "", Page{Limit: MaxLimit})
			return int64(len(list.Items)), err
		},
		"objects in a folder": func() (int64, error) {
			list, err := s.ObjectFolder(s.call(model.ActionObjectList), bucket, "", "/", Page{Limit: MaxLimit})
			return int64(len(list.Items)), err
		},
		"objects of the bucket": func() (int64, error) {
			b, err := s.BucketGet(s.call(model.ActionBucketGet), bucket)
			return b.ObjectCount, err
		},
		"objects of the buckets": func() (n int64, err error) {
			list, err := s.BucketList(s.call(model.ActionBucketList), Page{})
			for _, b := range list.Items {
				n += b.ObjectCount
			}
			return n, err
		},
		"objects of the organization": func() (int64, error) {
			a, err := s.AccountGet(s.call(model.ActionUsageGet))
			return a.Totals.Objects, err
		},
		"objects of the appliance": func() (int64, error) {
			m, err := s.Measure()
			return m.Totals.Objects, err
		},
		"objects but for those in the trash": func() (int64, error) {
			list, err := s.TrashObjectList(s.call(model.ActionTrashObjectList), Page{Limit: MaxLimit})
			return uploads - int64(len(list.Items)), err
		},
		"audited uploads but for deletions": func() (n int64, err error) {
			entries, _, err := s.AuditList(s.call(model.ActionAuditList), AuditFilter{}, 1, MaxLimit)
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
		if _, err := s.ProjectCreate(s.call(model.ActionProjectCreate), fmt.Sprint("project-", i)); err != nil {
			t.Fatal(err)
		}
		list, err := s.ProjectList(s.call(model.ActionProjectList), Page{})
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
				before, err := s.meta.Commits()
				if err != nil {
					b.Fatal(err)
				}
				if err := read(); err != nil {
					b.Fatal(err)
				}
				after, err := s.meta.Commits()
				if err != nil {
					b.Fatal(err)
				}
				commits += after - before
			}
			b.ReportMetric(float64(commits)/float64(b.N), "commits/read")
		})
	}
}
