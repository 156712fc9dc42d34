package objectstore_test

import (
	"errors"
	"net/http"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/internal/objectstore"
	. "holdfast/internal/objectstore/objectstoretest"
	"holdfast/internal/sealed"
)

// TestRightsOfAMachine: credentials that may not delete are enough for everything
// but Delete, with a session token too, and Probe sees what they lack.
func TestRightsOfAMachine(t *testing.T) {
	for _, server := range Servers(t) {
		t.Run(server.Name, func(t *testing.T) {
			bucket := server.Bucket(t, true)
			s := open(t, "s3://"+bucket+"/p", objectstore.Options{Getenv: server.Restricted(t, bucket).Getenv})
			defer s.Close()
			found, err := s.Probe(t.Context())
			if err != nil || found.MayDelete || !found.Conditional || !found.Lock || !found.Versioned {
				t.Errorf("Probe finds %+v, %v", found, err)
			}
			retention := objectstore.Retention{Mode: objectstore.Governance, Until: time.Now().Add(time.Hour)}
			if err := s.Create(t.Context(), "a", objectstore.Bytes("x"), objectstore.CreateOptions{Retention: retention}); err != nil {
				t.Fatal(err)
			}
			retention.Until = retention.Until.Add(time.Hour)
			if err := s.Retain(t.Context(), "a", retention); err != nil {
				t.Error(err)
			}
			if _, err := Read(t.Context(), s, "a", objectstore.Range{}); err != nil {
				t.Error(err)
			}
			if err := s.Create(t.Context(), "b", objectstore.Bytes("x"), objectstore.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			if err := s.Delete(t.Context(), "b"); !errors.Is(err, objectstore.ErrDenied) {
				t.Errorf("Delete: %v, want %v", err, objectstore.ErrDenied)
			}
		})
	}
}

// TestRotatedCredentials: credentials that were exchanged are found without a restart.
func TestRotatedCredentials(t *testing.T) {
	for _, server := range Servers(t) {
		t.Run(server.Name, func(t *testing.T) {
			var rotated atomic.Bool
			good := server.Environment("")
			old := good.With("AWS_ACCESS_KEY_ID", "revoked")
			s := open(t, "s3://"+server.Bucket(t, false), objectstore.Options{Getenv: func(name string) string {
				if rotated.Load() {
					return good.Getenv(name)
				}
				return old.Getenv(name)
			}})
			defer s.Close()
			if err := s.Create(t.Context(), "a", objectstore.Bytes("x"), objectstore.CreateOptions{}); !errors.Is(err, objectstore.ErrDenied) {
				t.Fatalf("with the old credentials: %v, want %v", err, objectstore.ErrDenied)
			}
			rotated.Store(true)
			if err := s.Create(t.Context(), "a", objectstore.Bytes("x"), objectstore.CreateOptions{}); err != nil {
				t.Errorf("with the new ones: %v", err)
			}
		})
	}
}

// TestDeleteRemovesEveryVersion: what versioning would keep for ever is gone.
func TestDeleteRemovesEveryVersion(t *testing.T) {
	for _, server := range Servers(t) {
		t.Run(server.Name, func(t *testing.T) {
			bucket := server.Bucket(t, true)
			s := open(t, "s3://"+bucket, objectstore.Options{Getenv: server.Environment("").Getenv})
			defer s.Close()
			for range 2 {
				if err := s.Create(t.Context(), "a", objectstore.Bytes("x"), objectstore.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
				if err := s.Delete(t.Context(), "a"); err != nil {
					t.Fatal(err)
				}
			}
			server.RemoveBucket(t, bucket) // refused while there is a version
		})
	}
}

// TestStoreWithoutVersions: a store that does not know versions deletes too.
func TestStoreWithoutVersions(t *testing.T) {
	withFaults(t, func(t *testing.T, r *rig) {
		r.proxy.Inject(Fault{Method: http.MethodGet, Path: "versions", Act: Answer(501, "NotImplemented")})
		if err := r.create(t, "a", nil); err != nil {
			t.Fatal(err)
		}
		if err := r.store.Delete(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		if _, err := r.store.Stat(t.Context(), "a"); !errors.Is(err, objectstore.ErrNotFound) {
			t.Errorf("it is there: %v", err)
		}
	})
}

// TestMemory: sealed objects of the largest size go up and come back through a few
// buffers.
func TestMemory(t *testing.T) {
	server := Servers(t)[0]
	s := open(t, "s3://"+server.Bucket(t, false), objectstore.Options{Getenv: server.Environment("").Getenv})
	defer s.Close()
	key := sealed.NewKey(1)
	keys, err := sealed.NewRing(key)
	if err != nil {
		t.Fatal(err)
	}
	const plain = objectstore.MaxSize - 64<<10
	body, err := sealed.Seal(key, "big", objectstore.Bytes(Random(plain, 1)))
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	peak := watchHeap(t)
	if err := s.Create(t.Context(), "big", body, objectstore.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	o, err := s.Get(t.Context(), "big", objectstore.Range{})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	r, err := sealed.NewReader(o, o.Length, keys, "big")
	if err != nil {
		t.Fatal(err)
	}
	if n := count(t, r); n != plain {
		t.Errorf("%d bytes come back of %d", n, plain)
	}
	if grown := peak(); grown > 4<<20 {
		t.Errorf("an object of 64 MiB took %d KiB of heap", grown>>10)
	}
}
