package repository

import (
	"errors"
	"fmt"
	"io/fs"
)

// readEntries reads the encoded entries of the run's first records into buf,
// as many as it has room for, and returns them with the index's name.
func (r *Repository) readEntries(run Run, buf []byte) (string, []byte, error) {
	if err := r.openedIndex(run.Session); err != nil {
		return "", nil, err
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	x := r.indexes[run.Session]
	if x == nil {
		return "", nil, errClosed
	}
	b, err := x.read(run.First, run.Count, buf)
	return x.name, b, err
}

// entry reads one.
func (r *Repository) entry(ref Ref) (entry, error) {
	var buf [entrySize]byte
	name, b, err := r.readEntries(Run{ref.Session, ref.Ordinal, 1}, buf[:])
	if err != nil {
		return entry{}, err
	}
	return parseEntry(name, b)
}

// openedIndex sees to it that a session's index is open.
func (r *Repository) openedIndex(session uint32) error {
	r.mu.RLock()
	_, open := r.indexes[session]
	r.mu.RUnlock()
	if open {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, open := r.indexes[session]; open {
		return nil
	}
	name := indexName(session)
	x, err := openIndex(r.path(name), name, session)
	if errors.Is(err, fs.ErrNotExist) {
		return damaged(name, "it is missing, and a backup needs it")
	}
	if err != nil {
		return fmt.Errorf("open index: %w", err)
	}
	r.indexes[session] = x
	return nil
}

// forgetIndex has a session's index opened anew when it is next needed,
// because there is another or none.
func (r *Repository) forgetIndex(session uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if x := r.indexes[session]; x != nil {
		x.close()
		delete(r.indexes, session)
	}
}

// eachEntry calls visit for each of the chunks, in order; for zeros with a
// zero Ref and entry.
func (r *Repository) eachEntry(chunks Chunks, visit func(Ref, entry) error) error {
	buf := make([]byte, 0, entrySize*256)
	for _, run := range chunks {
		for run.Count > 0 {
			n, err := r.visitEntries(run, buf[:cap(buf)], visit)
			if err != nil {
				return err
			}
			run.First, run.Count = run.First+n, run.Count-n
		}
	}
	return nil
}

// visitEntries visits the first of a run, and returns how many.
func (r *Repository) visitEntries(run Run, buf []byte, visit func(Ref, entry) error) (uint32, error) {
	if run.Session == 0 {
		for range run.Count {
			if err := visit(Ref{}, entry{}); err != nil {
				return 0, err
			}
		}
		return run.Count, nil
	}
	name, b, err := r.readEntries(run, buf)
	if err != nil {
		return 0, err
	}
	n := uint32(0)
	for ; len(b) > 0; b, n = b[entrySize:], n+1 {
		e, err := parseEntry(name, b)
		if err == nil {
			err = visit(Ref{run.Session, run.First + n}, e)
		}
		if err != nil {
			return 0, err
		}
	}
	return n, nil
}

// FileCRC32C returns the CRC-32C of a file of that size with those chunks.
func (r *Repository) FileCRC32C(chunks Chunks, size int64) (uint32, error) {
	crc, left := uint32(0), size
	err := r.eachEntry(chunks, func(ref Ref, e entry) error {
		n := min(left, ChunkSize)
		left -= n
		if ref == (Ref{}) {
			e.crc32c = ZerosCRC32C(n)
		} else if int64(e.raw) != n {
			return damaged(indexName(ref.Session), fmt.Sprintf("record %d has %d bytes where a file has %d", ref.Ordinal, e.raw, n))
		}
		crc = CombineCRC32C(crc, e.crc32c, n)
		return nil
	})
	if err == nil && left != 0 {
		err = fmt.Errorf("%d bytes of a file have no chunk", left)
	}
	return crc, err
}
