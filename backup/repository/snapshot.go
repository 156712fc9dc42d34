package repository

import (
	"fmt"

	"github.com/zeebo/blake3"
)

// Snapshot is a backup open for reading. While it is open, nothing it needs is removed, even if the backup is
// deleted.
type Snapshot struct {
	*Manifest
	Digest string // of the manifest, in hex
	r      *Repository
}

// Snapshot opens a backup. The caller must close it.
func (r *Repository) Snapshot(id string) (*Snapshot, error) {
	r.removal.RLock()
	defer r.removal.RUnlock()
	m, digest, err := r.Manifest(id)
	if err != nil {
		return nil, err
	}
	s := &Snapshot{Manifest: m, Digest: digest, r: r}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pins[s] = true
	return s, nil
}

// Close closes the snapshot. Close is idempotent.
func (s *Snapshot) Close() {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	delete(s.r.pins, s)
}

// Repository returns the repository of the backup.
func (s *Snapshot) Repository() *Repository { return s.r }

// Check reads only the index entries that the backup needs. It quickly finds a missing record, or a manifest that
// does not match its content.
func (s *Snapshot) Check() error {
	root, err := s.r.contentRoot(s.Manifest)
	if err != nil {
		return err
	}
	if root != s.root {
		return s.r.noteIndex(damaged(ManifestName(s.Backup.ID), "the content of its chunks is not what it was made for"))
	}
	return nil
}

// contentRoot computes the digest over the hashes of all chunks, and checks that the size of each matches its
// position in a file.
func (r *Repository) contentRoot(m *Manifest) (root Hash, err error) {
	h := blake3.New()
	for i := range m.Entries {
		e := &m.Entries[i]
		left := e.Size
		err := r.eachEntry(e.Chunks, func(ref Ref, stored entry) error {
			h.Write(stored.hash[:]) // zeros have a hash of zeros
			if !r.isWhole(stored) {
				return damaged(indexName(stored.index), fmt.Sprintf("record %d is an overlay on a missing record", ref.Ordinal))
			}
			n := min(left, ChunkSize)
			left -= n
			if ref != (Ref{}) && int64(stored.raw) != n {
				return damaged(indexName(stored.index), fmt.Sprintf("record %d has %d bytes where %s has %d", ref.Ordinal, stored.raw, e.Path, n))
			}
			return nil
		})
		if err != nil {
			return root, r.noteIndex(fmt.Errorf("%s: %w", e.Path, err))
		}
	}
	h.Sum(root[:0])
	return root, nil
}
