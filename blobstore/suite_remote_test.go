package blobstore_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"

	"holdfast/blobstore"
)

// remote is the second tier of a session's store: every file leaves the disk as soon as it is there.
type remote struct {
	mu      sync.Mutex
	content map[blobstore.Ref]string
	broken  bool // the first read of get fails
	fails   bool // the next call
}

func (r *remote) fetch(_ context.Context, a blobstore.Away, from, n int64) (io.ReadCloser, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fails {
		r.fails = false
		return nil, errors.New("the remote is broken")
	}
	return io.NopCloser(strings.NewReader(r.content[a.Ref][from : from+n])), nil
}

// evict makes a file away.
func (r *remote) evict(s *session, ref blobstore.Ref, content string) {
	s.t.Helper()
	if r == nil || ref.Segment() != 0 {
		return
	}
	r.mu.Lock()
	r.content[ref] = content
	r.mu.Unlock()
	if err := s.Evict([]blobstore.Away{{Ref: ref, Size: int64(len(content)), Location: []byte("there")}}); err != nil {
		s.t.Fatal(err)
	}
	if !s.IsAway(ref) {
		s.t.Errorf("%s did not leave", ref)
	}
}

// breakDown has the next call fail, of a remote that is broken.
func (r *remote) breakDown() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fails = r.broken
}

// listAway adds the files that are listed as away to those that Walk reports: one that comes meanwhile is in either.
func (s *session) listAway(seen map[blobstore.Ref]int64) {
	s.t.Helper()
	if err := s.EachListed(func(a blobstore.Away, _ bool) error {
		seen[a.Ref] = a.Size
		return nil
	}); err != nil {
		s.t.Fatal(err)
	}
}
