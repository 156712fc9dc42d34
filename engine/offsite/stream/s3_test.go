package stream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"holdfast/internal/objectstore"
	"holdfast/internal/objectstore/objectstoretest"
	"holdfast/internal/sealed"
)

// TestServers writes, crashes, takes over and recovers on real servers, with
// a proxy between that loses answers, breaks connections and changes bytes.
func TestServers(t *testing.T) {
	for _, server := range objectstoretest.Servers(t) {
		t.Run(server.Name, func(t *testing.T) {
			proxy := objectstoretest.NewProxy(t, server.URL)
			store, err := objectstore.Open(t.Context(), "s3://"+server.Bucket(t, false)+"/pre/fix", objectstore.Options{
				Getenv: server.Environment(proxy.URL).Getenv, Patience: time.Second, HeaderTimeout: 5 * time.Second, StallTimeout: 5 * time.Second,
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = store.Close() })
			r := repository(t, store, ring(t))
			s := &script{owner: "a"}
			w := open(t, claim(t, r, "one", false), Options{Interval: 50 * time.Millisecond, MaxBackOff: time.Second}, s)
			proxy.Inject(
				objectstoretest.Fault{Method: "PUT", Path: "/log/", Skip: 1, Times: 2, Act: objectstoretest.LoseAnswer()},
				objectstoretest.Fault{Method: "PUT", Path: "/log/", Skip: 2, Times: 3, Act: objectstoretest.SlowDown()},
				objectstoretest.Fault{Method: "PUT", Path: "/file/", Skip: 1, Times: 2, Act: objectstoretest.LoseAnswer()},
				objectstoretest.Fault{Method: "PUT", Path: "/point/", Times: 1, Act: objectstoretest.Twice()},
				objectstoretest.Fault{Method: "PUT", Path: "/log/", Skip: 6, Times: 1, Act: objectstoretest.WrongUpload()},
			)
			for range 12 {
				s.add(w, 100_000)
				flush(t, w)
			}
			content := random(300_000)
			ref, err := w.Store(t.Context(), bytes.NewReader(content))
			if err != nil {
				t.Fatal(err)
			}
			entries := append(storeEntries(t, w, 5), Entry{Owner: "db", Kind: "pack", Name: "large", Ref: ref})
			checkpoint(t, w, entries)
			s.add(w, 100)
			flush(t, w)
			proxy.Clear()
			h := claim(t, r, "two", true)
			if _, err := w.Checkpoint(t.Context(), func(context.Context) ([]Entry, error) { return nil, nil }); !errors.Is(err, ErrFenced) {
				t.Errorf("the first machine after the takeover: %v", err)
			}
			kill(w)
			proxy.Inject(objectstoretest.Fault{Method: "GET", Path: "/e/", Skip: 3, Times: 2, Act: objectstoretest.HalfAnswer()})
			c, err := h.Find(t.Context(), time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			if got := catalog(t, r, c); fmt.Sprint(got) != fmt.Sprint(sorted(entries)) {
				t.Errorf("the catalog is %v", got)
			}
			if got, err := readFile(t, r, ref, 100_000, 150_000); err != nil || !bytes.Equal(got, content[100_000:250_000]) {
				t.Errorf("%d bytes of the file: %v", len(got), err)
			}
			if seen := texts(t, r, nil, time.Time{}); seen["a"] != 13 {
				t.Errorf("a reader sees %v", seen)
			}
		})
	}
}

// TestLocks: what is stored is locked, what recoveries need is locked again before
// that ends, and locked garbage stays.
func TestLocks(t *testing.T) {
	for _, server := range objectstoretest.Servers(t) {
		t.Run(server.Name, func(t *testing.T) {
			store, err := objectstore.Open(t.Context(), "s3://"+server.Bucket(t, true), objectstore.Options{Getenv: server.Environment("").Getenv})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = store.Close() })
			const day = 24 * time.Hour
			r := repository(t, store, ring(t))
			s := &script{owner: "a"}
			w := open(t, claim(t, r, "one", false), Options{Lock: objectstore.Governance, Retention: 30 * day}, s)
			defer kill(w)
			refs := storeEntries(t, w, 2)
			for i := range 2 {
				s.add(w, 100)
				checkpoint(t, w, refs[i:i+1])
				time.Sleep(10 * time.Millisecond)
			}
			later := time.Now().Add(20 * day)
			for _, want := range []bool{true, false} {
				n, err := r.ExtendLocks(t.Context(), later, time.Now(), objectstore.Governance, 30*day)
				if err != nil || n > 0 != want {
					t.Errorf("%d locks are extended, %v", n, err)
				}
			}
			for i, want := range []time.Duration{30 * day, 50 * day} {
				info, err := store.Stat(t.Context(), refs[i].Ref.partKey(0))
				if got := time.Until(info.RetainUntil); err != nil || (got-want).Abs() > time.Hour {
					t.Errorf("file %d is locked for %s, %v", i, got, err)
				}
			}
			if plan, err := r.PlanPrune(t.Context(), later, time.Now()); err != nil || len(plan.Points) > 0 || plan.LockedSince.IsZero() {
				t.Errorf("a locked point is to be pruned: %+v, %v", plan, err)
			}
			plan, err := r.planPrune(t.Context(), later, time.Now())
			if err != nil || len(plan.Objects) == 0 || len(plan.Points) != 1 {
				t.Fatalf("%+v, %v", plan, err)
			}
			if _, err := r.Prune(t.Context(), plan); !errors.Is(err, objectstore.ErrLocked) {
				t.Errorf("a locked point is pruned: %v", err)
			}
			plan.Points = nil
			if locked, err := r.Prune(t.Context(), plan); err != nil || locked != len(plan.Objects) {
				t.Errorf("%d of %d are locked, %v", locked, len(plan.Objects), err)
			}
		})
	}
}

// TestLocksOfKeys: nothing opens the copy without the marker and the master keys, so they are locked at once, before there
// is a point, however young they are.
func TestLocksOfKeys(t *testing.T) {
	for _, server := range objectstoretest.Servers(t) {
		t.Run(server.Name, func(t *testing.T) {
			store, err := objectstore.Open(t.Context(), "s3://"+server.Bucket(t, true), objectstore.Options{Getenv: server.Environment("").Getenv})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = store.Close() })
			recipient, identity := identities(t)
			if _, _, err := Init(t.Context(), store, time.Now(), recipient); err != nil {
				t.Fatal(err)
			}
			keys, err := LoadKeys(t.Context(), store, unwrapWith(identity))
			if err != nil {
				t.Fatal(err)
			}
			r := repository(t, store, keys)
			if _, err := r.Rotate(t.Context(), recipient); err != nil {
				t.Fatal(err)
			}
			now := time.Now()
			for _, want := range []int{4, 0} {
				n, err := r.ExtendLocks(t.Context(), now, now, objectstore.Governance, 24*time.Hour)
				if n != want || !errors.Is(err, ErrNoPoint) {
					t.Errorf("%d locks are extended, %v", n, err)
				}
			}
			for _, key := range []string{markerKey, sealed.KeyName(1), sealed.KeyName(2), announcement(2)} {
				info, err := store.Stat(t.Context(), key)
				if got := time.Until(info.RetainUntil); err != nil || (got-24*time.Hour).Abs() > time.Hour {
					t.Errorf("%s is locked for %s, %v", key, got, err)
				}
			}
		})
	}
}
