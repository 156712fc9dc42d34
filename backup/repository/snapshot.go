package repository

import (
	"fmt"

	"github.com/zeebo/blake3"
)

// Snapshot is a backup being read. As long as it is open, nothing of it is
// removed, whatever is deleted.
type Snapshot struct {
	*Manifest
	Digest string // of the manifest, in hex
	r      *Repository
}

// Snapshot opens a backup. The caller closes it.
func (r *Repository) Snapshot(id string) (*Snapshot, error) {
	r.work.RLock()
	defer r.work.RUnlock()
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

// Close lets go of the backup. Close twice is fine.
func (s *Snapshot) Close() {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	delete(s.r.pins, s)
}

// Repository returns the one the backup is in.
func (s *Snapshot) Repository() *Repository { return s.r }

// Check reads the indexes of all that the backup needs, and nothing else: it
// says in a moment whether a record is missing or the manifest was made for
// other ones.
func (s *Snapshot) Check() error {
	root, err := s.r.contentRoot(s.Manifest)
	if err != nil {
		return err
	}
	if root != s.root {
		return s.r.noteIndex(damaged(manifestName(s.Backup.ID), "the chunks it names have other contents now than when it was made"))
	}
	return nil
}

// contentRoot computes the digest over all chunks' hashes, and checks that
// each has as many bytes as its place in a file.
func (r *Repository) contentRoot(m *Manifest) (root Hash, err error) {
	h := blake3.New()
	for i := range m.Entries {
		e := &m.Entries[i]
		left := e.Size
		err := r.eachEntry(e.Chunks, func(ref Ref, stored entry) error {
			h.Write(stored.hash[:]) // zeros have a hash of zeros
			if !r.isWhole(stored) {
				return damaged(indexName(stored.index), fmt.Sprintf("record %d lies on one that is missing", ref.Ordinal))
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
