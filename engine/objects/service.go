// Package objects implements buckets and objects: uploads, downloads, listing and the trash, and the maintenance of the
// store: expiry, compaction of the journal, scrubbing, and the reconciliation of blobs with records at a start.
//
// An object becomes durable when the blob store syncs its bytes and a note of its record (object_upload.go,
// object_journal.go). The record reaches the metadata afterwards, or at the next start if the appliance crashes in
// between.
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
	core         *core.Core
	space        *uploadSpace
	reserved     *reservations
	locks        *objectLocks
	recent       *recentObjects
	places       *places
	versionWalks *versionWalks
	unlinks      chan struct{} // signals that a removal of discarded blobs is about to begin
	opened       atomic.Bool   // the journal was replayed

	copied    func(blobstore.Ref) bool // nil without an off-site copy
	fetchAway Fetch                    // nil without an off-site copy
}

// New returns the service. Open opens its store.
func New(c *core.Core) *Service {
	return &Service{
		core:         c,
		space:        newUploadSpace(c.Config.DataDir, blobDirectory(c)),
		reserved:     newReservations(),
		locks:        newObjectLocks(),
		recent:       newRecentObjects(),
		places:       newPlaces(),
		versionWalks: newVersionWalks(),
		unlinks:      make(chan struct{}, 1),
	}
}

// Directory is the name of the blob store in the data directory.
const Directory = "blobs"

func blobDirectory(c *core.Core) string { return filepath.Join(c.Config.DataDir, Directory) }

// Open opens the blob store, which replays the part of its journal that the metadata do not have yet, and passes the
// store to the core.
func (s *Service) Open() error { return s.replay(s.deliver) }

// replay opens the blob store, which delivers that part of its journal.
func (s *Service) replay(deliver func([]blobstore.Entry)) (err error) {
	s.core.Blobs, err = blobstore.Open(blobDirectory(s.core), blobstore.Options{
		After: blobstore.Position(s.core.Meta.Applied()), Deliver: deliver, Damaged: s.noteDamaged,
		DamagedList: s.noteDamagedList, Fetch: s.fetch, Room: s.room,
	})
	if err != nil {
		return fmt.Errorf("open blob store: %w", err)
	}
	s.opened.Store(true)
	return nil
}
