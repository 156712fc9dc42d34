package repository

import "fmt"

// readEntries reads the encoded entries of the first records of a run into buf, as many as fit, and returns them
// with their index.
func (r *Repository) readEntries(run Run, buf []byte) (*index, []byte, error) {
	for {
		if err := r.locate(run.Session); err != nil {
			return nil, nil, err
		}
		x, b, err := r.readLocated(run, buf)
		if x != nil {
			return x, b, err
		}
	}
}

// readLocated is readEntries for a located session. It returns no index if Collect has replaced it meanwhile.
func (r *Repository) readLocated(run Run, buf []byte) (*index, []byte, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	x := r.indexes[r.homes[run.Session]]
	if x == nil {
		return nil, nil, nil
	}
	b, err := x.read(Ref{run.Session, run.First}, run.Count, buf)
	return x, b, err
}

// entry reads a needed entry, and records damage.
func (r *Repository) entry(ref Ref) (entry, error) {
	e, err := r.lookUp(ref)
	return e, r.noteIndex(err)
}

// lookUp reads an entry that may be missing.
func (r *Repository) lookUp(ref Ref) (entry, error) {
	var buf [entrySize]byte
	x, b, err := r.readEntries(Run{ref.Session, ref.Ordinal, 1}, buf[:])
	if err != nil {
		return entry{}, err
	}
	return parseEntry(x.name, x.number, b)
}

// isWhole reports whether the record is complete: the base chunk of an overlay exists. The base of a garbage overlay
// may already be removed.
func (r *Repository) isWhole(e entry) bool {
	if e.base == (Ref{}) {
		return true
	}
	_, err := r.lookUp(e.base)
	return err == nil
}

// usable reports whether new backups may refer to a record: it is complete, and neither it nor its base is known to
// be damaged.
func (r *Repository) usable(ref Ref, e entry) bool {
	return r.isWhole(e) && !r.distrusted(ref) && !r.distrusted(e.base)
}

// eachEntry calls visit for each chunk in order, with a zero Ref and entry for a chunk of zeros.
func (r *Repository) eachEntry(chunks Chunks, visit func(Ref, entry) error) error {
	buf := make([]byte, 0, entrySize*min(256, chunks.Len()))
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

// visitEntries calls visit for the first chunks of a run, and returns their number.
func (r *Repository) visitEntries(run Run, buf []byte, visit func(Ref, entry) error) (uint32, error) {
	if run.Session == 0 {
		for range run.Count {
			if err := visit(Ref{}, entry{}); err != nil {
				return 0, err
			}
		}
		return run.Count, nil
	}
	x, b, err := r.readEntries(run, buf)
	if err != nil {
		return 0, r.noteIndex(err)
	}
	n := uint32(0)
	for ; len(b) > 0; b, n = b[entrySize:], n+1 {
		e, err := parseEntry(x.name, x.number, b)
		if err = r.noteIndex(err); err == nil {
			err = visit(Ref{run.Session, run.First + n}, e)
		}
		if err != nil {
			return 0, err
		}
	}
	return n, nil
}

// FileCRC32C returns the CRC-32C of a file with the given chunks and size.
func (r *Repository) FileCRC32C(chunks Chunks, size int64) (uint32, error) {
	crc, left := uint32(0), size
	err := r.eachEntry(chunks, func(ref Ref, e entry) error {
		n := min(left, ChunkSize)
		left -= n
		if ref == (Ref{}) {
			e.crc32c = ZerosCRC32C(n)
		} else if int64(e.raw) != n {
			return damaged(indexName(e.index), fmt.Sprintf("record %d has %d bytes where a file has %d", ref.Ordinal, e.raw, n))
		}
		crc = CombineCRC32C(crc, e.crc32c, n)
		return nil
	})
	if err == nil && left != 0 {
		err = fmt.Errorf("%d bytes of a file have no chunk", left)
	}
	return crc, err
}
