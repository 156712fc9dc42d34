package offsite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"holdfast/blobstore"
	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/objects"
	"holdfast/engine/offsite/stream"
	"holdfast/internal/objectstore"
	"holdfast/internal/parallel"

	"golang.org/x/time/rate"
)

// backgroundFetches is how many bodies are fetched at once while nobody waits for them, so that others can be fetched for
// downloads.
const backgroundFetches = 2

// readPatience bounds how long a download waits for a store that fails.
const readPatience = 10 * time.Second

// fetchBody opens n bytes of a body that is away, from an offset on. It uses a connection of its own, because the writer may
// have none.
func (s *Service) fetchBody(ctx context.Context, a blobstore.Away, from, n int64) (io.ReadCloser, error) {
	if !s.Enabled() {
		_, err := locate("", a) // which copy it is in
		return nil, fmt.Errorf("the appliance was started without --offsite: %w", err)
	}
	c, err := s.reader(ctx)
	if err != nil {
		return nil, err
	}
	ref, err := locate(c.marker.Repository, a)
	if err != nil {
		return nil, err
	}
	body, err := c.repository.Open(ctx, ref, from, n)
	if err != nil {
		return nil, damageOf(ctx, c, err)
	}
	return fetchedBody{body, ctx, c}, nil
}

// fetchedBody reports damage as the blob store does.
type fetchedBody struct {
	io.ReadCloser
	ctx  context.Context //nolint:containedctx // of the fetch
	from *connection
}

// Read implements io.Reader.
func (b fetchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		err = damageOf(b.ctx, b.from, err)
	}
	return n, err
}

// damageOf makes an error of a read one of the blob store, if it means that bytes are lost. In a store without its marker
// nothing is lost for good.
func damageOf(ctx context.Context, c *connection, err error) error {
	if !stream.Damaged(err) {
		return err
	}
	if absent := c.repository.CheckMarker(ctx); absent != nil {
		return fmt.Errorf("%w: %v", absent, err)
	}
	return fmt.Errorf("%w: %w", blobstore.ErrDamaged, err)
}

// reader returns a connection for reading, which stays open until the service is closed.
func (s *Service) reader(ctx context.Context) (*connection, error) {
	s.reading.Lock()
	defer s.reading.Unlock()
	if s.readFrom != nil {
		return s.readFrom, nil
	}
	c, err := connect(ctx, s.location, objectstore.Options{Patience: readPatience})
	if err != nil {
		return nil, err
	}
	if s.recovery != nil && s.recovery.isPending() {
		if err := s.recovery.store.refuseOther(c, s.location.URL); err != nil {
			return nil, errors.Join(err, &objects.OtherCopyError{Repository: s.recovery.store.get().Repository}, c.close())
		}
	}
	s.readFrom = c
	return c, nil
}

// closeReader closes that connection.
func (s *Service) closeReader() {
	s.reading.Lock()
	defer s.reading.Unlock()
	if s.readFrom == nil {
		return
	}
	_ = s.readFrom.close() // nothing was written
	s.readFrom = nil
}

// verifyRate limits how fast bodies are read before it is forgotten where their copies are, in bytes per second.
const verifyRate = 64 << 20

// fetchBodies is fetchAway, and then forgets where the copies of bodies are if none may be away. It reads all of them before: what
// is damaged here is fetched again.
func fetchBodies(ctx context.Context, c *core.Core, mayLeave func(size int64) bool) (damaged int, err error) {
	limit := rate.NewLimiter(verifyRate, verifyRate)
	for {
		damaged, all, err := fetchAway(ctx, c, mayLeave)
		if !all {
			return damaged, err
		}
		_, err = c.Blobs.NoneAway(ctx, limit.WaitN) // others may have left the disk meanwhile
		if !errors.Is(err, blobstore.ErrDamaged) {
			return 0, err
		}
		c.Log.Warn("an object is damaged on this disk and is fetched from the off-site copy", "error", err)
	}
}

// fetchAway brings the bodies of objects to this machine that are away, or known to be damaged here, and must not be. It returns
// how many are damaged in the store, which stay away, and whether all are here now. Those for which this disk has no space do not
// keep the others away. It can be repeated after an error.
func fetchAway(ctx context.Context, c *core.Core, mayLeave func(size int64) bool) (damaged int, all bool, err error) {
	bodies, err := awayBodies(c)
	if err != nil {
		return 0, false, err
	}
	away := len(bodies)
	bodies = slices.DeleteFunc(bodies, func(a blobstore.Away) bool { return mayLeave(a.Size) })
	all = len(bodies) == away
	var lost atomic.Int64
	var noSpace atomic.Pointer[error]
	err = parallel.Do(ctx, backgroundFetches, slices.Values(bodies), func(ctx context.Context, bodies <-chan blobstore.Away) error {
		for a := range bodies {
			err := c.Blobs.Fetch(ctx, a.Ref)
			switch {
			case errors.Is(err, blobstore.ErrNotFound) && !mayBeLive(c, a.Ref): // its object was deleted meanwhile
			case errors.Is(err, blobstore.ErrDamaged):
				c.Log.Error("the bytes of an object are damaged or missing in the off-site copy", "blob", a.Ref, "error", err)
				lost.Add(1)
			case isNoSpace(err) && mayBeLive(c, a.Ref):
				noSpace.Store(&err)
			case err != nil && mayBeLive(c, a.Ref):
				return err
			}
		}
		return nil
	})
	damaged = int(lost.Load())
	if e := noSpace.Load(); err == nil && e != nil {
		err = *e
	}
	return damaged, all && damaged == 0 && err == nil, err
}

func isNoSpace(err error) bool {
	e, ok := errors.AsType[*model.Error](err)
	return ok && e.Reason == model.ReasonNoSpace
}

// awayBodies returns the bodies that are away, or known to be damaged here, and belong to an object.
func awayBodies(c *core.Core) (bodies []blobstore.Away, err error) {
	return listedBodies(c, func(here bool) bool { return !here })
}

// listedBodies returns the bodies that are listed as away and belong to an object; only which of them, by whether they are on
// this disk too, and not known to be damaged.
func listedBodies(c *core.Core, which func(here bool) bool) (bodies []blobstore.Away, err error) {
	if err := c.Blobs.EachListed(func(a blobstore.Away, here bool) error {
		if which(here) {
			bodies = append(bodies, a)
		}
		return nil
	}); err != nil || len(bodies) == 0 {
		return nil, err
	}
	err = c.Meta.ViewFlushed(func(tx *meta.Tx) error {
		bodies = slices.DeleteFunc(bodies, func(a blobstore.Away) bool { return !tx.BlobKnown(string(a.Ref)) })
		return nil
	})
	return bodies, err
}

// mayBeLive reports whether a blob has a row, or the metadata cannot be read.
func mayBeLive(c *core.Core, ref blobstore.Ref) (live bool) {
	err := c.Meta.View(func(tx *meta.Tx) error {
		live = tx.BlobKnown(string(ref))
		return nil
	})
	return live || err != nil
}
