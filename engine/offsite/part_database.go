package offsite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"holdfast/backup/repository"
	"holdfast/backup/wal"
	"holdfast/engine/core"
	"holdfast/engine/offsite/stream"
	"holdfast/engine/recovery"
	"holdfast/internal/parallel"
)

// databasePart copies the backups and the WAL of all databases, those in the trash too. The log
// gets WAL as the archive makes it durable, and a File frame for each file of a repository once a backup or
// a collection has ended. A checkpoint has the files of both: a full segment is stored once, compressed,
// although the log had its WAL before.
type databasePart struct {
	recovery *recovery.Service
	dir      string // the data directory
	space    *core.Space
	log      *slog.Logger
	run      *databaseRun // nil between stop and start

	unreadable *unreadable
}

// newDatabasePart returns the part.
func newDatabasePart(r *recovery.Service, c *core.Core, u *unreadable) *databasePart {
	return &databasePart{recovery: r, dir: c.Config.DataDir, space: &c.Space, log: c.Log, unreadable: u}
}

// databaseRun is what the part does for one writer.
type databaseRun struct {
	*databasePart
	writer *stream.Writer
	known  *known
	frames *frameQueue
	end    func() // of the observation
	cancel context.CancelFunc
	tasks  sync.WaitGroup
	wake   chan struct{}
	newest stream.Point // of this run, when the checkpoint under way began

	packing sync.Mutex // held while a segment is compressed, which takes memory

	mu      sync.Mutex
	changed map[string]bool // databases
	owners  map[string]*databaseCopy
}

// databaseCopy is the state of one database's copy.
type databaseCopy struct {
	*databaseRun
	id string

	mu      sync.Mutex // held while the database is looked at
	archive *wal.Archive
	source  *walSource // nil before the first look
	files   map[string]storedFile
	partial map[string]stream.Entry // of the newest checkpoint, by name
	same    map[string]bool         // full segments, by name: this run stored them or found the store's to be the same
	failed  error                   // what the look under way could not read

	// ownFiles and ownWAL mean that what the store has of the repository and of the WAL is of this machine.
	ownFiles, ownWAL bool

	point     stream.Point           // of this run, the newest when the newest look for a checkpoint began
	collected map[walStream]walRange // the WAL of the log when the newest look for a checkpoint began
}

// storedFile is a file of the repository that the store has.
type storedFile struct {
	digest repository.Hash // of its content, or what it ends with
	ref    stream.Reference
}

// start implements part.
func (p *databasePart) start(w *stream.Writer, known *known) error {
	ctx, cancel := context.WithCancel(context.Background())
	r := &databaseRun{
		databasePart: p, writer: w, known: known, frames: &frameQueue{wake: w.Wake, known: known}, cancel: cancel,
		wake: make(chan struct{}, 1), changed: map[string]bool{}, owners: map[string]*databaseCopy{},
	}
	p.run = r
	r.end = p.recovery.ObserveArchives(r.note)
	w.Add(r.frames)
	ids, err := p.recovery.ArchivedDatabases()
	if err != nil {
		p.stop()
		return err
	}
	for _, id := range ids {
		r.attach(id)
	}
	for _, id := range append(ids, known.Owners()...) {
		if id != "" {
			r.note(id)
		}
	}
	r.tasks.Go(func() { r.work(ctx) })
	return nil
}

// stop implements part.
func (p *databasePart) stop() {
	r := p.run
	if r == nil {
		return
	}
	p.run = nil
	r.end()
	r.cancel()
	r.tasks.Wait()
	for _, c := range r.owners {
		if c.source != nil {
			c.source.tap.Close()
		}
	}
	r.frames.close()
}

// note has the worker look at a database.
func (r *databaseRun) note(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changed[id] = true
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// work looks at the databases that have changed.
func (r *databaseRun) work(ctx context.Context) {
	for {
		select {
		case <-r.wake:
		case <-ctx.Done():
			return
		}
		r.mu.Lock()
		changed := r.changed
		r.changed = map[string]bool{}
		r.mu.Unlock()
		for id := range changed {
			_, _ = r.of(id).look(ctx, false) // which notes why something is not copied
		}
	}
}

// of returns the copy of a database.
func (r *databaseRun) of(id string) *databaseCopy {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.owners[id]
	if c == nil {
		c = &databaseCopy{
			databaseRun: r, id: id, files: map[string]storedFile{}, partial: map[string]stream.Entry{}, same: map[string]bool{},
			ownFiles: r.known.own, ownWAL: r.known.own,
		}
		r.owners[id] = c
	}
	return c
}

// attach begins to copy the WAL of a database that is there when the run begins.
func (r *databaseRun) attach(id string) {
	c := r.of(id)
	c.mu.Lock()
	defer c.mu.Unlock()
	if isAway(r.dir, id) {
		return
	}
	if _, err := c.open(true); err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.unreadable.note(r.log, id, err)
	}
}

// open opens the archives of a database, and reads its WAL from then on. beginning means that the run begins.
func (c *databaseCopy) open(beginning bool) (*repository.Repository, error) {
	archive, r, err := c.recovery.Archives(c.id)
	if err != nil || archive == c.archive {
		return r, err
	}
	if err := c.regain(archive); err != nil {
		return r, err
	}
	sent := c.sent(archive, c.source, beginning)
	if c.source != nil {
		c.writer.Remove(c.source)
		c.source.tap.Close()
	}
	c.archive, c.source = archive, &walSource{owner: c.id, known: c.known, tap: archive.Tap(sent, c.writer.Wake)}
	c.writer.Add(c.source)
	return r, nil
}

// drop notes that a database is gone.
func (c *databaseCopy) drop() {
	if c.source != nil {
		c.writer.Remove(c.source)
		c.source.tap.Close()
	}
	if c.source != nil || slices.Contains(c.known.Owners(), c.id) {
		c.frames.add(stream.OwnerDrop{Owner: c.id})
	}
	c.unreadable.forget(c.id)
	c.known.DropOwner(c.id)
	c.databaseRun.mu.Lock()
	defer c.databaseRun.mu.Unlock()
	delete(c.owners, c.id)
}

// look stores the files of the database that the store lacks. For a checkpoint it returns
// the database's whole state. What cannot be read stays as the copy has it, and holds up nothing else.
func (c *databaseCopy) look(ctx context.Context, checkpoint bool) ([]stream.Entry, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = nil
	if checkpoint {
		c.collect()
	}
	entries, err := c.state(ctx, checkpoint)
	if ctx.Err() != nil || c.writer.Err() != nil {
		return nil, errors.Join(ctx.Err(), c.writer.Err())
	}
	if _, gone := os.Stat(c.recovery.BackupDirectory(c.id)); errors.Is(gone, fs.ErrNotExist) {
		lost, checkErr := c.isLost()
		switch {
		case checkErr != nil:
			return nil, checkErr
		case !lost:
			c.drop()
			return nil, nil
		case !checkpoint:
			return nil, nil // its removal may be about to be recorded
		}
		err = fmt.Errorf("the directory of its backups: %w", errLost)
	}
	if checkpoint && err != nil && !errors.Is(err, errLogUnread) {
		if unread := c.knowLog(ctx, func(wal.StoredFile) bool { return true }); unread != nil {
			err = unread
		}
	}
	if errors.Is(err, errLogUnread) {
		return nil, err // no checkpoint ends the log before it is read
	}
	if err != nil {
		c.failed = errors.Join(c.failed, err)
		entries = slices.Concat(c.known.Entries(c.id, KindRepository), c.known.Entries(c.id, KindWAL)) // what the copy has
	}
	if c.failed != nil {
		purged, checkErr := c.recovery.IsPurged(c.id)
		if purged && checkErr == nil { // drop follows once its directory is gone
			c.failed = nil
		} else {
			entries = append(entries, c.staleEntry())
		}
	}
	if checkpoint || c.failed != nil {
		c.unreadable.note(c.log, c.id, c.failed)
	}
	return entries, nil
}

// collect begins a look for a checkpoint. If the checkpoint of the look before is stored, it has the WAL that the log had then.
func (c *databaseCopy) collect() {
	if c.newest != c.point {
		c.known.trimWAL(c.collected)
		c.point = c.newest
	}
	c.collected = c.known.ofLog(c.id)
}

// staleEntry returns the mark of a database that could not be read whole.
func (c *databaseCopy) staleEntry() stream.Entry {
	return stream.Entry{Owner: c.id, Kind: KindStale, Name: KindWAL, Data: []byte{}}
}

// state is look without what it does about failures.
func (c *databaseCopy) state(ctx context.Context, checkpoint bool) ([]stream.Entry, error) {
	if isAway(c.dir, c.id) {
		if !checkpoint {
			return nil, nil
		}
		entries, err := c.awayEntries(ctx)
		if !errors.Is(err, fs.ErrNotExist) { // else they were fetched meanwhile
			return entries, err
		}
	}
	r, err := c.open(false)
	if err != nil {
		return nil, err
	}
	entries, err := c.copyRepository(ctx, r)
	if err != nil || !checkpoint {
		return nil, err
	}
	more, err := c.walEntries(ctx)
	return append(entries, more...), err
}

// skip passes over a file that cannot be read.
func (c *databaseCopy) skip(name string, err error) {
	c.failed = errors.Join(c.failed, fmt.Errorf("%s: %w", name, err))
}

// databasesAtOnce is how many databases are looked at at a time for a checkpoint.
const databasesAtOnce = 4

// entries implements part.
func (p *databasePart) entries(ctx context.Context) ([]stream.Entry, error) {
	r := p.run
	r.newest = r.writer.Status().Point
	ids, err := p.recovery.ArchivedDatabases()
	if err != nil {
		return nil, err
	}
	here := map[string]bool{"": true}
	for _, id := range ids {
		here[id] = true
	}
	for _, id := range r.known.Owners() {
		if !here[id] { // its directory may be lost
			ids = append(ids, id)
		}
	}
	var mu sync.Mutex
	var all []stream.Entry
	err = parallel.Do(ctx, databasesAtOnce, slices.Values(ids), func(ctx context.Context, ids <-chan string) error {
		for id := range ids {
			entries, err := r.of(id).look(ctx, true)
			if err != nil {
				return fmt.Errorf("database %s: %w", id, err)
			}
			mu.Lock()
			all = append(all, entries...)
			mu.Unlock()
		}
		return nil
	})
	return all, err
}

// frameQueue is a source of frames about files. Those that were added together are stored together.
type frameQueue struct {
	wake  func()
	known *known // is told of the files whose frames wait

	mu     sync.Mutex
	queue  [][]stream.Frame
	added  uint64
	closed bool
}

// maxTogether bounds the frames that are stored together, to well below the size of a log object.
const maxTogether = 10_000

func (q *frameQueue) add(bodies ...stream.Body) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	now := time.Now()
	for some := range slices.Chunk(bodies, maxTogether) {
		frames := make([]stream.Frame, len(some))
		for i, b := range some {
			frames[i] = stream.Frame{Time: now, Body: b}
			q.added++
			if f, ok := b.(stream.File); ok {
				q.known.waits(f.Owner, f.Name, q.added)
			}
		}
		q.queue = append(q.queue, frames)
	}
	q.wake()
}

func (q *frameQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed, q.queue = true, nil
}

// Next implements stream.Source.
func (q *frameQueue) Next(context.Context, int, time.Time) ([]stream.Frame, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.queue) == 0 {
		return nil, nil
	}
	frames := q.queue[0]
	q.queue = q.queue[1:]
	return frames, nil
}

// Stored implements stream.Source.
func (q *frameQueue) Stored(n uint64) { q.known.framesStored(n) }

// Stream implements stream.Named.
func (q *frameQueue) Stream() stream.Stream { return stream.Stream{Kind: StreamBackups} }

// Waiting implements stream.Source.
func (q *frameQueue) Waiting() (w stream.Waiting) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.queue) == 0 {
		return w
	}
	for _, frames := range q.queue {
		w.Bytes += int64(len(frames)) * frameBytes
	}
	w.Oldest = q.queue[0][0].Time
	return w
}

// frameBytes is about the size of a frame about a file.
const frameBytes = 150
