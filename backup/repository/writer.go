package repository

import (
	"errors"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"

	"holdfast/internal/parallel"
)

// Writer writes the chunks and the manifest of one backup. Several goroutines may fill its Pieces at once. It ends
// with Commit or Abort.
type Writer struct {
	r       *Repository
	session uint32
	known   *known
	encoder *zstd.Encoder

	mu     sync.Mutex
	packs  *packSet
	index  *indexWriter
	next   uint32 // ordinal
	stored int64  // bytes of records
	failed error  // the first error; nothing is written after it
	ended  bool
}

// Begin starts a backup. Nothing is removed from the repository until the backup ends.
func (r *Repository) Begin() (*Writer, error) {
	r.removal.RLock()
	w, err := r.begin()
	if err != nil {
		r.removal.RUnlock()
		return nil, fmt.Errorf("begin backup: %w", err)
	}
	return w, nil
}

func (r *Repository) begin() (*Writer, error) {
	if err := r.writable(); err != nil {
		return nil, err
	}
	known, err := r.loadKnown()
	if err != nil {
		return nil, err
	}
	encoder, err := newEncoder()
	if err != nil {
		return nil, err
	}
	session := r.nextSession()
	index, err := r.createIndex(session)
	if err != nil {
		return nil, errors.Join(err, encoder.Close())
	}
	return &Writer{
		r: r, session: session, known: known, encoder: encoder,
		packs: newPackSet(r, session, 0), index: index,
	}, nil
}

// newEncoder returns an encoder that allows one concurrent EncodeAll per processor. Records have hashes, so frames
// need no checksum.
func newEncoder() (*zstd.Encoder, error) {
	// The window must come before the level: SpeedFastest halves a default window.
	encoder, err := zstd.NewWriter(nil, zstd.WithWindowSize(ChunkSize), zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithEncoderCRC(false), zstd.WithEncoderConcurrency(parallel.Processors()))
	if err != nil {
		return nil, fmt.Errorf("compress chunks: %w", err)
	}
	return encoder, nil
}

// append stores the new records of pending in order, and sets the Ref of each. records contains their bytes.
func (w *Writer) append(pending []pendingChunk, records []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed != nil {
		return w.failed
	}
	if w.ended {
		return errEnded
	}
	if err := w.appendRecords(pending, records); err != nil {
		w.failed = err
		return err
	}
	return nil
}

var errEnded = errors.New("the backup has ended")

func (w *Writer) appendRecords(pending []pendingChunk, records []byte) error {
	kept, first := w.number(pending, records)
	if len(kept) == 0 {
		return nil
	}
	pack, offset, err := w.packs.place()
	if err != nil {
		return err
	}
	if err := w.packs.write(kept); err != nil {
		return err
	}
	w.stored += int64(len(kept))
	var entries []byte
	for i := range pending {
		if p := &pending[i]; p.fresh {
			p.entry.pack, p.entry.offset = pack, offset
			offset += p.entry.stored
			entries = p.entry.append(entries)
		}
	}
	if err := w.index.add(Ref{w.session, first}, entries); err != nil {
		return err
	}
	for _, p := range pending {
		if p.fresh {
			w.known.add(p.entry.hash, p.ref)
		}
	}
	return nil
}

// number assigns a Ref to each new chunk, and returns the first ordinal. It removes chunks from the records that
// another goroutine has stored meanwhile.
func (w *Writer) number(pending []pendingChunk, records []byte) (kept []byte, first uint32) {
	kept, first = records[:0], w.next
	at := uint32(0)
	for i := range pending {
		p := &pending[i]
		if !p.fresh {
			continue
		}
		record := records[at : at+p.entry.stored]
		at += p.entry.stored
		if ref, ok := w.find(p.entry.hash); ok {
			p.ref, p.fresh = ref, false
			continue
		}
		p.ref = Ref{w.session, w.next}
		w.next++
		kept = append(kept, record...)
	}
	return kept, first
}

// find returns the stored chunk with that hash. It ignores an entry that cannot be read.
func (w *Writer) find(h Hash) (Ref, bool) {
	ref, ok := w.known.find(h)
	if !ok {
		return ref, false
	}
	e, err := w.entry(ref)
	return ref, err == nil && e.hash == h && w.r.usable(ref, e)
}

// entry reads the entry of a chunk of this or an earlier session.
func (w *Writer) entry(ref Ref) (entry, error) {
	if ref.Session != w.session {
		return w.r.entry(ref)
	}
	var buf [entrySize]byte
	if _, err := w.index.f.ReadAt(buf[:], headerSize+int64(ref.Ordinal)*entrySize); err != nil {
		return entry{}, fmt.Errorf("read index: %w", err)
	}
	return parseEntry(indexName(w.session), w.session, buf[:])
}

// Commit publishes the backup: its packs, then the index, then the manifest, each synced before the next. It returns
// the manifest's digest in hex and the number of bytes that the backup added to the repository. After an error the
// backup does not exist, and the caller must call Abort.
func (w *Writer) Commit(m *Manifest) (digest string, stored int64, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed == nil && w.ended {
		w.failed = errEnded
	}
	if w.failed != nil {
		return "", 0, w.failed
	}
	stored = w.stored
	if w.next > 0 {
		n, err := w.publishChunks()
		if err != nil {
			w.failed = err
			return "", 0, fmt.Errorf("commit backup: %w", err)
		}
		stored = n
	}
	m.Backup.StoredBytes = stored
	digest, n, err := w.r.publishManifest(m)
	if err != nil {
		w.failed = err
		return "", 0, fmt.Errorf("commit backup: %w", err)
	}
	return digest, stored + n, w.end()
}

// publishChunks makes the packs and the index durable.
func (w *Writer) publishChunks() (stored int64, err error) {
	if err := w.packs.finish(); err != nil {
		return 0, err
	}
	w.index.packs = w.packs.done
	if err := w.index.publish(); err != nil {
		return 0, err
	}
	for _, p := range w.packs.done {
		stored += p.size
	}
	return stored + w.index.size, nil
}

// Abort abandons the backup and removes its files. After Commit it does nothing.
func (w *Writer) Abort() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return nil
	}
	var err error
	if !w.index.published { // otherwise the packs are garbage for Collect
		err = w.packs.abort()
	}
	if err := errors.Join(err, w.end()); err != nil {
		return fmt.Errorf("abort backup: %w", err)
	}
	return nil
}

// end releases everything that is not published.
func (w *Writer) end() error {
	w.ended = true
	defer w.r.removal.RUnlock()
	var err error
	if w.index.f != nil {
		err = w.index.abort()
	}
	return errors.Join(err, w.encoder.Close())
}
