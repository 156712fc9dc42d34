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
)

// TestServers writes, crashes, takes over and recovers on real servers, with
// a proxy between that loses answers, breaks connections and changes bytes.
func TestServers(t *testing.T) {
	for _, server := range objectstoretest.Servers(t) {
		t.Run(server.Name, func(t *testing.T) {
			proxy := objectstoretest.NewProxy(t, server.URL)
			store, err := objectstore.Open("s3://"+server.Bucket(t, false)+"/pre/fix", objectstore.Options{
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
