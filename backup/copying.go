package backup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"sync"

	"holdfast/backup/repository"
	"holdfast/backup/wal/xlog"
	"holdfast/internal/parallel"
)

const (
	chunkSize = repository.ChunkSize
	// pieceSize is how much of a file one worker reads at a time.
	pieceSize = 8 << 20
	// maxWorkers bounds the memory: each worker uses a few MiB.
	maxWorkers = 8
	// maxDamaged is the maximum number of damaged pages that an error names.
	maxDamaged = 5
)

// copying reads the files of the data directory into chunks.
type copying struct {
	t     *taking
	files []*copiedFile

	mu      sync.Mutex
	damaged []string            // damaged pages
	torn    map[string]xlog.LSN // LSNs of pages that WAL must restore
}

// copiedFile is a file being backed up.
type copiedFile struct {
	entry   repository.Entry
	old     *repository.Entry // the file in the base, nil if none
	changed int               // number of pages that changed since the base
	known   bool              // changed is valid
	isData  bool              // it has pages with checksums
	first   uint32            // the block of its first page in its relation

	mu     sync.Mutex
	gone   bool // dropped during the backup, or excluded
	pieces []repository.Flushed
}

func newCopying(t *taking, entries []repository.Entry) *copying {
	c := &copying{t: t, torn: map[string]xlog.LSN{}}
	for _, e := range entries {
		f := &copiedFile{entry: e, old: t.base.file(e.Path)}
		c.files = append(c.files, f)
		if e.IsDir() {
			continue
		}
		if relation, ok := parseRelation(e.Path); ok {
			f.isData, f.first = t.server.checksums, relation.segment*pagesPerSegment
		}
		pages, known := t.base.changed(&e)
		f.changed, f.known = len(pages), known
		if f.untouched() {
			f.entry.CRC32C, f.entry.Chunks = f.old.CRC32C, f.old.Chunks
			continue
		}
		f.pieces = make([]repository.Flushed, (e.Size+pieceSize-1)/pieceSize)
		c.t.progress.expect(f.expected())
	}
	return c
}

// untouched reports whether the file is identical to the base's.
func (f *copiedFile) untouched() bool {
	return f.known && f.changed == 0 && f.entry.Size == f.old.Size
}

// expected returns the number of bytes of the file that will be read.
func (f *copiedFile) expected() int64 {
	if !f.known {
		return f.entry.Size
	}
	return int64(f.changed)*pageSize + f.entry.Size - f.old.Size
}

// piece is a part of a file to be read.
type piece struct {
	file  *copiedFile
	index int
}

// run reads all files, pg_control last.
func (c *copying) run(ctx context.Context) error {
	if err := parallel.Do(ctx, min(parallel.Processors(), maxWorkers), c.pieces, c.work); err != nil {
		return err
	}
	if err := c.damage(); err != nil {
		return err
	}
	return c.control()
}

// damage returns an error that names the damaged pages, or nil.
func (c *copying) damage() error {
	if len(c.damaged) == 0 {
		return nil
	}
	slices.Sort(c.damaged)
	return fmt.Errorf("the data directory has pages with a wrong checksum: %v", c.damaged)
}

// pieces yields the pieces of all files except pg_control, in order.
func (c *copying) pieces(yield func(piece) bool) {
	for _, f := range c.files {
		if f.entry.Path == controlFile {
			continue
		}
		for i := range f.pieces {
			if !yield(piece{f, i}) {
				return
			}
		}
	}
}

func (c *copying) work(ctx context.Context, pieces <-chan piece) error {
	w, err := newWorker(ctx, c)
	if err != nil {
		return err
	}
	defer w.close()
	for p := range pieces {
		if err := w.copy(p); err != nil {
			return fmt.Errorf("copy %s: %w", p.file.entry.Path, err)
		}
	}
	return nil
}

// note records a damaged page for the error at the end. Once there are maxDamaged, it returns the error immediately.
func (c *copying) note(page string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.damaged = append(c.damaged, page)
	if len(c.damaged) < maxDamaged {
		return nil
	}
	return fmt.Errorf("the data directory has many pages with a wrong checksum, among them: %v", c.damaged)
}

// noteTorn records a page with a wrong checksum whose LSN is after the start. checkTorn validates it once the stop
// is known.
func (c *copying) noteTorn(page string, lsn xlog.LSN) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.torn[page] = lsn
}

// checkTorn records the torn pages whose LSN is after the backup's stop as damaged.
func (c *copying) checkTorn(stop xlog.LSN) error {
	for page, lsn := range c.torn {
		if lsn > stop {
			c.damaged = append(c.damaged, page)
		}
	}
	return c.damage()
}

// control reads pg_control, after everything else.
func (c *copying) control() error {
	for _, f := range c.files {
		if f.entry.Path == controlFile {
			return c.copyControl(f)
		}
	}
	return errors.New("the data directory has no " + controlFile)
}

func (c *copying) copyControl(f *copiedFile) error {
	content, err := readControl(c.t.root)
	if err != nil {
		return err
	}
	p, err := c.t.writer.NewPiece()
	if err != nil {
		return err
	}
	defer p.Close()
	if err := p.Add(content, repository.Ref{}); err != nil {
		return err
	}
	done, err := p.Flush()
	f.entry.Size, f.pieces = int64(len(content)), []repository.Flushed{done}
	c.t.progress.add(int64(len(content)))
	return err
}

// excludeUnlogged removes relations from the backup that have acquired an init fork: they may have been listed
// before it was created. WAL creates the init fork, and PostgreSQL fails to start if the main fork already exists. A
// relation never becomes logged under the same number.
func (c *copying) excludeUnlogged(ctx context.Context) error {
	names := make([]string, len(c.files))
	for i, f := range c.files {
		names[i] = f.entry.Path
	}
	gone, err := unloggedAmong(ctx, c.t.root, names)
	for _, f := range c.files {
		if _, found := slices.BinarySearch(gone, f.entry.Path); found {
			f.gone = true
		}
	}
	return err
}

// unloggedAmong returns those of the names, in order, whose files PostgreSQL recreates by what the directory holds now.
func unloggedAmong(ctx context.Context, root *os.Root, names []string) (gone []string, err error) {
	now, read := newListing(ctx, root), map[string]bool{}
	for _, name := range names {
		if _, ok := parseRelation(name); !ok {
			continue
		}
		if dir := path.Dir(name); !read[dir] {
			if _, err := now.read(dir); err != nil {
				return nil, fmt.Errorf("list data directory: %w", err)
			}
			read[dir] = true
		}
		if now.isRecreated(name) {
			gone = append(gone, name)
		}
	}
	slices.Sort(gone)
	return gone, nil
}

// done returns the entries of the manifest.
func (c *copying) done() []repository.Entry {
	entries := make([]repository.Entry, 0, len(c.files))
	for _, f := range c.files {
		if f.gone {
			continue
		}
		for _, p := range f.pieces {
			f.entry.Chunks = f.entry.Chunks.Append(p.Chunks)
			f.entry.CRC32C = repository.CombineCRC32C(f.entry.CRC32C, p.CRC32C, p.Size)
		}
		entries = append(entries, f.entry)
	}
	return entries
}
