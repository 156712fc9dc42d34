// Package objects holds buckets and the objects in them: uploads, downloads,
// listing, the trash, and the care of the store: expiry, compaction of the
// journal, scrubbing, and the reconciliation of blobs with records at a start.
//
// An object becomes durable when its bytes and a note of its record are synced by
// the blob store (upload.go, journal.go); the record reaches the metadata
// afterwards, and at the next start if the appliance dies in between.
package objects

import (
	"fmt"
	"path/filepath"
	"sync/atomic"

	"holdfast/blobstore"
	"holdfast/engine/core"
)

// Service carries out the operations on buckets and objects.
type Service struct {
	core     *core.Core
	space    *uploadSpace
	reserved *reservations
	locks    *objectLocks
	recent   *recentObjects
	unlinks  chan struct{} // holds one while unlinking is about to begin
	opened   atomic.Bool   // the journal was replayed
}

// New returns the service. Open opens its store.
func New(c *core.Core) *Service {
	return &Service{
		core:     c,
		space:    newUploadSpace(c.Config.DataDir, blobDirectory(c)),
		reserved: newReservations(),
		locks:    newObjectLocks(),
		recent:   newRecentObjects(),
		unlinks:  make(chan struct{}, 1),
	}
}

func blobDirectory(c *core.Core) string { return filepath.Join(c.Config.DataDir, "blobs") }

// Open opens the blob store, which replays what of its journal the metadata do not
// have yet, and gives it to the core.
func (s *Service) Open() (err error) {
	s.core.Blobs, err = blobstore.Open(blobDirectory(s.core), blobstore.Options{
		After: blobstore.Position(s.core.Meta.Applied()), Deliver: s.deliver, Damaged: s.passOver,
	})
	if err != nil {
		return fmt.Errorf("open blob store: %w", err)
	}
	s.opened.Store(true)
	return nil
}
