package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"holdfast/backup/repository"
)

// worker reads pieces of files, one after the other.
type worker struct {
	ctx   context.Context
	c     *copying
	piece *repository.Piece
	buf   []byte // a chunk
}

func newWorker(ctx context.Context, c *copying) (*worker, error) {
	p, err := c.t.writer.NewPiece()
	if err != nil {
		return nil, err
	}
	return &worker{ctx: ctx, c: c, piece: p, buf: make([]byte, chunkSize)}, nil
}

func (w *worker) close() { w.piece.Close() }

// copy reads one piece. If the file is missing, it was dropped meanwhile, and WAL replays that.
func (w *worker) copy(p piece) error {
	f, err := w.c.t.root.Open(p.file.entry.Path)
	if errors.Is(err, fs.ErrNotExist) {
		p.file.mu.Lock()
		defer p.file.mu.Unlock()
		p.file.gone = true
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	first := int64(p.index) * (pieceSize / chunkSize)
	past := min(first+pieceSize/chunkSize, (p.file.entry.Size+chunkSize-1)/chunkSize)
	if p.file.known {
		err = w.changed(f, p.file, first, past)
	} else {
		err = w.all(f, p.file, first, past)
	}
	if err != nil {
		return err
	}
	p.file.pieces[p.index], err = w.piece.Flush()
	return err
}

// all reads the chunks in [first, past).
func (w *worker) all(f *os.File, file *copiedFile, first, past int64) error {
	bases := file.bases(first, past)
	for n := first; n < past; n++ {
		content, err := w.read(f, file, n)
		if err != nil {
			return err
		}
		if err := w.piece.Add(content, bases[n-first]); err != nil {
			return err
		}
	}
	return nil
}

// bases returns the chunks of the base at the same positions.
func (f *copiedFile) bases(first, past int64) []repository.Ref {
	refs := make([]repository.Ref, 0, past-first)
	if f.old != nil {
		_ = f.old.Chunks.Slice(first, past-first).Refs(func(ref repository.Ref) error {
			refs = append(refs, ref)
			return nil
		})
	}
	return refs[:past-first]
}

// size returns the size of a chunk in bytes.
func (f *copiedFile) size(chunk int64) int64 { return min(chunkSize, f.entry.Size-chunk*chunkSize) }

// read reads a chunk. If the file shrank since it was listed, the rest is zeros; WAL replays the truncation.
func (w *worker) read(f *os.File, file *copiedFile, chunk int64) ([]byte, error) {
	content := w.buf[:file.size(chunk)]
	if err := context.Cause(w.ctx); err != nil {
		return nil, err
	}
	n, err := f.ReadAt(content, chunk*chunkSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	clear(content[n:])
	w.c.t.progress.add(int64(len(content)))
	if !file.isData {
		return content, nil
	}
	for at := 0; at+pageSize <= n; at += pageSize {
		block := uint32(chunk*(chunkSize/pageSize)) + uint32(at/pageSize)
		if err := w.check(f, file, content[at:at+pageSize], block); err != nil {
			return nil, err
		}
	}
	return content, nil
}

const (
	pageTries = 10
	pagePause = 20 * time.Millisecond
)

// check verifies a page of a file. A page with a wrong checksum may have been read during a write, so check reads it
// again first. A page that changed since the backup started may stay wrong, because WAL restores it completely if
// its LSN is valid.
func (w *worker) check(f *os.File, file *copiedFile, page []byte, block uint32) error {
	for range pageTries {
		if pageIsSound(page, file.first+block) {
			return nil
		}
		time.Sleep(pagePause)
		n, err := f.ReadAt(page, int64(block)*pageSize)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		clear(page[n:]) // truncated meanwhile
	}
	name := fmt.Sprintf("%s block %d", file.entry.Path, block)
	if lsn := pageLSN(page); lsn >= w.c.t.server.start {
		w.c.noteTorn(name, lsn)
		return nil
	}
	return w.c.note(name)
}

// changed takes unchanged chunks from the base and reads the others.
func (w *worker) changed(f *os.File, file *copiedFile, first, past int64) error {
	const perChunk = chunkSize / pageSize
	bases := file.bases(first, past)
	pages, _ := w.c.t.base.changed(&file.entry)
	at, _ := slices.BinarySearch(pages, uint32(first*perChunk))
	pages = pages[at:]
	for n := first; n < past; n++ {
		count, _ := slices.BinarySearch(pages, uint32((n+1)*perChunk))
		content, err := w.chunk(f, file, n, bases[n-first], pages[:count])
		if err != nil {
			return err
		}
		pages = pages[count:]
		if content != nil {
			err = w.piece.Add(content, bases[n-first])
		} else {
			err = w.piece.AddStored(bases[n-first], file.size(n))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// chunk returns the content of a chunk with the given changed pages, or nil if it did not change.
func (w *worker) chunk(f *os.File, file *copiedFile, chunk int64, base repository.Ref, pages []uint32) ([]byte, error) {
	if chunk*chunkSize+file.size(chunk) > file.old.Size {
		return w.read(f, file, chunk) // the file has grown
	}
	if len(pages) == 0 {
		return nil, nil
	}
	content, err := w.before(base, file.size(chunk))
	if errors.Is(err, repository.ErrDamaged) {
		return w.read(f, file, chunk)
	}
	if err != nil {
		return nil, err
	}
	for _, block := range pages {
		if err := w.patch(f, file, content, chunk, block); err != nil {
			return nil, err
		}
	}
	return content, nil
}

// before returns the content of a chunk in the base.
func (w *worker) before(base repository.Ref, size int64) ([]byte, error) {
	if base == (repository.Ref{}) {
		clear(w.buf[:size])
		return w.buf[:size], nil
	}
	return w.piece.Reader().Chunk(base, w.buf)
}

// patch reads one page into its place in the content of a chunk.
func (w *worker) patch(f *os.File, file *copiedFile, content []byte, chunk int64, block uint32) error {
	at := int64(block)*pageSize - chunk*chunkSize
	if at >= int64(len(content)) {
		return nil // truncated meanwhile
	}
	page := content[at:min(at+pageSize, int64(len(content)))]
	if err := context.Cause(w.ctx); err != nil {
		return err
	}
	n, err := f.ReadAt(page, int64(block)*pageSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	clear(page[n:])
	w.c.t.progress.add(int64(len(page)))
	if !file.isData || len(page) < pageSize {
		return nil
	}
	return w.check(f, file, page, block)
}
