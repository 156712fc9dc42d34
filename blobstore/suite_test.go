package blobstore_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/blobstore"
)

// suite is what the package promises, independent of files.
var suite = map[string]func(*testing.T, *session){
	"round trip":             roundTrip,
	"same content twice":     sameContentTwice,
	"nothing before commit":  nothingBeforeCommit,
	"abort leaves nothing":   abortLeavesNothing,
	"ending twice":           endingTwice,
	"truncated write":        truncatedWrite,
	"delete while read":      deleteWhileRead,
	"remove is idempotent":   removeIsIdempotent,
	"hostile references":     hostileReferences,
	"concurrent creates":     concurrentCreates,
	"walk is what is there":  walkIsWhatIsThere,
	"walk stops":             walkStops,
	"reopening":              reopening,
	"closed store":           closedStore,
	"readers share one blob": readersShareOneBlob,
	"published round trip":   publishedRoundTrip,
	"hostile notes":          hostileNotes,
	"delivered in order":     deliveredInOrder,
	"replayed from a place":  replayedFromAPlace,
	"overwrite while read":   overwriteWhileRead,
	"wrong checksum":         wrongChecksum,
	"slow uploads":           slowUploads,
	"walk while written":     walkWhileWritten,
}

func TestStore(t *testing.T) {
	for options, opts := range map[string]blobstore.Options{
		"usual":         {},
		"tiny":          {DirectorySize: 3, SegmentSize: 200},
		"nothing small": {Inline: 1},
		// Every file leaves the disk at once, and is fetched, whole or as it is read, kept or not.
		"second tier":          {Inline: 1},
		"second tier, kept":    {Inline: 1, FetchWhole: 1},
		"second tier, no room": {Inline: 1, Room: func(int64) error { return errors.New("no room") }},
		"broken second tier":   {Inline: 1, FetchWhole: 1, DirectorySize: 3},
	} {
		for name, test := range suite {
			t.Run(options+"/"+name, func(t *testing.T) {
				s, dir, opts := &session{t: t}, t.TempDir(), opts
				opts.Deliver = s.deliver
				if strings.Contains(options, "second tier") {
					if strings.HasPrefix(name, "walk") {
						t.Skip("Walk is about files on this disk")
					}
					s.remote = &remote{content: map[blobstore.Ref]string{}, broken: strings.HasPrefix(options, "broken")}
					opts.Fetch = s.remote.fetch
				}
				s.reopen = func(after blobstore.Position) *blobstore.Store {
					opts.After = after
					store, err := blobstore.Open(dir, opts)
					if err != nil {
						t.Fatal(err)
					}
					return store
				}
				s.Store = s.reopen(0)
				t.Cleanup(func() { s.Close() })
				test(t, s)
			})
		}
	}
}

// session is one test's store and shorthand for using it.
type session struct {
	*blobstore.Store
	t      *testing.T
	reopen func(after blobstore.Position) *blobstore.Store
	remote *remote // nil for a store of files only

	mu        sync.Mutex
	delivered []blobstore.Entry
}

func (s *session) deliver(entries []blobstore.Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range entries {
		e.Note = bytes.Clone(e.Note)
		s.delivered = append(s.delivered, e)
	}
}

// take returns the entries delivered since its last call.
func (s *session) take() []blobstore.Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.delivered
	s.delivered = nil
	return taken
}

// publish creates a blob with a note.
func (s *session) publish(note, content string) blobstore.Ref {
	s.t.Helper()
	w := s.create()
	if _, err := io.WriteString(w, content); err != nil {
		s.t.Fatal(err)
	}
	ref, err := w.Publish([]byte(note), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	s.remote.evict(s, ref, content)
	return ref
}

func (s *session) create() *blobstore.Writer {
	s.t.Helper()
	w, err := s.Create(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return w
}

func (s *session) put(content string) blobstore.Ref {
	s.t.Helper()
	w := s.create()
	if _, err := io.WriteString(w, content); err != nil {
		s.t.Fatal(err)
	}
	ref, size, err := w.Commit()
	if err != nil || size != int64(len(content)) {
		s.t.Fatalf("Commit answered size %d, error %v for %d bytes", size, err, len(content))
	}
	s.remote.evict(s, ref, content)
	return ref
}

func (s *session) open(ref blobstore.Ref) *blobstore.Reader {
	s.t.Helper()
	r, err := s.Open(s.t.Context(), ref)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

func (s *session) get(ref blobstore.Ref) string {
	s.t.Helper()
	r := s.open(ref)
	defer r.Close()
	s.remote.breakDown()
	content, err := io.ReadAll(r)
	if errors.Is(err, blobstore.ErrAway) {
		content, err = io.ReadAll(r) // the remote works again
	}
	if err != nil {
		s.t.Fatal(err)
	}
	if r.Size() != int64(len(content)) {
		s.t.Errorf("Size is %d, read %d bytes", r.Size(), len(content))
	}
	return string(content)
}

// all returns the size of every blob that Walk reports.
func (s *session) all() map[blobstore.Ref]int64 {
	s.t.Helper()
	seen := map[blobstore.Ref]int64{}
	err := s.Walk(func(ref blobstore.Ref, size int64, modTime time.Time) error {
		if _, twice := seen[ref]; twice {
			s.t.Errorf("Walk shows %s twice", ref)
		}
		if age := time.Since(modTime); age < -time.Minute || age > time.Hour {
			s.t.Errorf("Walk says %s was written at %v", ref, modTime)
		}
		seen[ref] = size
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.listAway(seen)
	return seen
}

func (s *session) mustBe(want map[blobstore.Ref]int64) {
	s.t.Helper()
	if diff := cmp.Diff(want, s.all()); diff != "" {
		s.t.Errorf("Walk (-want +got):\n%s", diff)
	}
}
