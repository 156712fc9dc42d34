package backup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"holdfast/backup/repository"
	"holdfast/internal/durable"
	"holdfast/internal/parallel"
)

// RestoreOptions are the options of Restore.
type RestoreOptions struct {
	// Workers is the number of files written concurrently; 0 means two per processor, as about half of them wait for
	// the disk, at most 8.
	Workers int
	// Progress, if set, is called for every MiB and at the end with the bytes restored and their total. Calls are
	// serialized, and the restore waits for them.
	Progress func(doneBytes, totalBytes int64)
}

// Restore creates the data directory dir from a backup. dir must be empty, or absent in an existing directory. The
// calling user owns the files and must be the user that runs PostgreSQL. pg_wal is left empty: for the first start,
// the caller must provide at least the WAL from the start of the backup to its stop. The directory needs
// source.Backup.SizeBytes of space.
//
// When Restore returns nil, dir is complete and synced to disk. When it fails, it removes what it wrote, and may be
// retried unless the error wraps [repository.ErrDamaged]. If the process dies before that, dir has no
// global/pg_control and must be removed.
func Restore(ctx context.Context, source *repository.Snapshot, dir string, opts RestoreOptions) error {
	if err := restore(ctx, source, dir, opts); err != nil {
		return fmt.Errorf("restore base backup: %w", err)
	}
	return nil
}

func restore(ctx context.Context, source *repository.Snapshot, dir string, opts RestoreOptions) error {
	if err := source.Check(); err != nil {
		return err
	}
	t, err := openTarget(dir)
	if err != nil {
		return err
	}
	defer t.close()
	r := &restoring{source: source, target: t, progress: &progress{tell: opts.Progress}}
	if err := r.run(ctx, opts.Workers); err != nil {
		return errors.Join(err, t.discard())
	}
	r.progress.finish()
	return nil
}

// restoring is a running Restore.
type restoring struct {
	source   *repository.Snapshot
	target   *target
	progress *progress

	files   []*restoredFile
	control []byte
}

// restoredFile is a file being written. Its pieces may be written in any order.
type restoredFile struct {
	entry *repository.Entry

	mu   sync.Mutex
	sums []uint32 // CRC-32C of each piece
	left int      // number of pieces left to write
}

func (r *restoring) run(ctx context.Context, workers int) error {
	r.progress.expect(r.source.Backup.SizeBytes)
	if err := r.skeleton(); err != nil {
		return err
	}
	if workers <= 0 {
		workers = min(2*parallel.Processors(), maxWorkers)
	}
	if err := parallel.Do(ctx, workers, r.pieces, r.work); err != nil {
		return err
	}
	if r.control == nil {
		return fmt.Errorf("the backup holds no %s", controlFile)
	}
	return r.target.finish(r.control)
}

// skeleton creates all directories, all empty and multi-piece files, and the files that a server's data directory
// does not have.
func (r *restoring) skeleton() error {
	for i := range r.source.Entries {
		e := &r.source.Entries[i]
		if e.IsDir() {
			if err := r.target.mkdir(e.Path); err != nil {
				return err
			}
			continue
		}
		pieces := int((e.Size + pieceSize - 1) / pieceSize)
		r.files = append(r.files, &restoredFile{entry: e, sums: make([]uint32, pieces), left: pieces})
		if pieces == 1 {
			continue // the worker that writes it creates it
		}
		f, err := r.makeFile(e)
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			return err
		}
	}
	for _, f := range ownFiles(r.source.Manifest) {
		if err := r.target.write(f.name, []byte(f.content)); err != nil {
			return err
		}
	}
	f, err := r.target.create(serverManifestFile)
	if err != nil {
		return err
	}
	err = writeServerManifest(f, r.source.Manifest)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", serverManifestFile, err)
	}
	return nil
}

// restorePiece is a part of a file to be written. Several workers may write to
// one file at once.
type restorePiece struct {
	file  *restoredFile
	index int
}

// pieces yields the pieces of every file.
func (r *restoring) pieces(yield func(restorePiece) bool) {
	for _, f := range r.files {
		for i := range f.sums {
			if !yield(restorePiece{f, i}) {
				return
			}
		}
	}
}

// makeFile creates a file at its final size, filled with zeros.
func (r *restoring) makeFile(e *repository.Entry) (*os.File, error) {
	f, err := r.target.create(e.Path)
	if err != nil {
		return nil, err
	}
	if err := f.Truncate(e.Size); err != nil {
		return nil, errors.Join(fmt.Errorf("make %s: %w", e.Path, err), f.Close())
	}
	return f, nil
}

// open opens the file of p.
func (r *restoring) open(p restorePiece) (*os.File, error) {
	if len(p.file.sums) == 1 {
		return r.makeFile(p.file.entry)
	}
	return r.target.root.OpenFile(p.file.entry.Path, os.O_WRONLY, 0)
}

func (r *restoring) work(ctx context.Context, pieces <-chan restorePiece) error {
	reader, err := r.source.Repository().NewReader()
	if err != nil {
		return err
	}
	defer reader.Close()
	buffer := directBuffers.Get().(*durable.Buffer)
	defer directBuffers.Put(buffer)
	for p := range pieces {
		if err := r.piece(ctx, reader, p, buffer.Bytes); err != nil {
			return fmt.Errorf("restore %s: %w", p.file.entry.Path, err)
		}
	}
	return nil
}

// piece writes a piece of a file. The worker that writes the last piece verifies the file's checksum.
func (r *restoring) piece(ctx context.Context, reader *repository.Reader, p restorePiece, buffer []byte) error {
	e := p.file.entry
	w := &pieceWriter{ctx: ctx, r: r, at: int64(p.index) * pieceSize, end: min(e.Size, int64(p.index+1)*pieceSize)}
	if e.Path != controlFile {
		var err error
		if w.f, err = r.open(p); err != nil {
			return err
		}
		if e.Size >= directSize && e.Size%durable.Align == 0 {
			w.direct(buffer)
		}
	}
	err := reader.Each(e.Chunks.Slice(w.at/chunkSize, pieceSize/chunkSize), w.chunk)
	if w.f != nil {
		if err == nil {
			err = w.flush()
		}
		beginSync(w.f, int64(p.index)*pieceSize, pieceSize)
		err = errors.Join(err, w.f.Close())
	}
	if err != nil {
		return err
	}
	return p.file.written(p.index, w.crc)
}

// written records the checksum of a piece, and verifies the file's checksum after the last one.
func (f *restoredFile) written(index int, crc uint32) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sums[index] = crc
	if f.left--; f.left > 0 {
		return nil
	}
	whole, left := uint32(0), f.entry.Size
	for _, sum := range f.sums {
		n := min(left, pieceSize)
		whole = repository.CombineCRC32C(whole, sum, n)
		left -= n
	}
	if whole != f.entry.CRC32C {
		return fmt.Errorf("%w: its checksum does not match the stored one", repository.ErrDamaged)
	}
	return nil
}
