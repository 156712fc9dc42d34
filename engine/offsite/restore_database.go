package offsite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"holdfast/backup/repository"
	"holdfast/backup/wal"
	"holdfast/backup/wal/xlog"
	"holdfast/engine/offsite/stream"
	"holdfast/engine/recovery"
	"holdfast/internal/durable"
	"holdfast/internal/parallel"
)

// databaseRestorer writes the WAL archives of all databases, as far as the log and the
// beginnings of partial segments have them, and the list of each database's other files, which
// fetchDatabase fetches.
type databaseRestorer struct {
	store   *stream.Repository
	dir     string // the data directory
	owners  map[string]*restoredDatabase
	dropped map[string]bool
}

// restoredDatabase is what is known of one database.
type restoredDatabase struct {
	copy  *wal.Copy
	files map[fetchKey]stream.Reference // to be fetched
	// partial are the beginnings of partial segments that are files in the store, written by finish.
	partial map[string]stream.Entry
	// damaged are those of them that finish could not read.
	damaged []wal.StoredFile
	// stale means that the machine could not read some of the database for the checkpoint: its WAL may have holes.
	stale bool
	// lacks means that the log lacks WAL of the database: nothing of it is applied that comes later, because it could not be
	// restored across the hole.
	lacks bool
	// applied is the time of the newest WAL of the log that was applied, zero for none.
	applied time.Time
}

type fetchKey struct{ kind, name string }

func newDatabaseRestorer(r *stream.Repository, dataDir string) *databaseRestorer {
	return &databaseRestorer{store: r, dir: dataDir, owners: map[string]*restoredDatabase{}, dropped: map[string]bool{}}
}

// backupsOf returns the directory of a database's backups.
func backupsOf(dataDir, owner string) string { return filepath.Join(dataDir, "backups", owner) }

func walOf(dataDir, owner string) string {
	return filepath.Join(backupsOf(dataDir, owner), recovery.WALDirectory)
}

// of returns what is known of a database.
func (d *databaseRestorer) of(owner string) (*restoredDatabase, error) {
	if owner == "" || owner == "." || owner == ".." || strings.ContainsAny(owner, "/\\\x00") {
		return nil, fmt.Errorf("%w: %q is not a database", stream.ErrCorrupt, owner)
	}
	o := d.owners[owner]
	if o == nil {
		o = &restoredDatabase{
			copy:    wal.NewCopy(walOf(d.dir, owner)),
			files:   map[fetchKey]stream.Reference{},
			partial: map[string]stream.Entry{},
		}
		d.owners[owner] = o
	}
	return o, nil
}

// entry implements restorer.
func (d *databaseRestorer) entry(_ context.Context, e stream.Entry) error {
	o, err := d.of(e.Owner)
	if err != nil {
		return err
	}
	switch e.Kind {
	case KindStale:
		o.stale = true
		return nil
	case KindRepository:
		return o.list(e.Kind, e.Name, e.Ref)
	}
	f, err := parseWALName(e.Name)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", stream.ErrCorrupt, err)
	case f.IsPartial():
		o.partial[e.Name] = e
		return o.copy.Later(f)
	case !e.Ref.IsZero():
		if err := o.list(e.Kind, e.Name, e.Ref); err != nil {
			return err
		}
		return o.copy.Later(f)
	}
	return o.copy.Put(f.Generation, f.Name, e.Data)
}

// size returns how many bytes of a database are still to be fetched.
func (d *databaseRestorer) size(owner string) (total int64) {
	if o := d.owners[owner]; o != nil {
		for _, ref := range o.files {
			total += ref.Size
		}
	}
	return total
}

// isStale reports whether some of a database could not be read for the checkpoint.
func (d *databaseRestorer) isStale(owner string) bool {
	return d.owners[owner] != nil && d.owners[owner].stale
}

// lack notes that the log lacks WAL of a database from here on.
func (d *databaseRestorer) lack(owner string) {
	if o := d.owners[owner]; o != nil {
		o.lacks = true
	}
}

// lacking reports whether the copy lacks WAL of a database, and the time of the newest WAL of the log that it has, zero
// if that has none.
func (d *databaseRestorer) lacking(owner string) (last time.Time, lacks bool) {
	o := d.owners[owner]
	if o == nil || !o.lacks {
		return last, false
	}
	return o.applied, true
}

// list adds a file to those to be fetched.
func (o *restoredDatabase) list(kind, name string, ref stream.Reference) error {
	if _, err := fetchPath("", kind, name); err != nil {
		return err
	}
	o.files[fetchKey{kind, name}] = ref
	return nil
}

// frame implements restorer.
func (d *databaseRestorer) frame(_ context.Context, f stream.Frame) error {
	var owner string
	switch b := f.Body.(type) {
	case stream.WAL:
		owner = b.Owner
	case stream.WALFile:
		owner = b.Owner
	case stream.File:
		owner = b.Owner
	case stream.FileDrop:
		owner = b.Owner
	case stream.OwnerDrop:
		return d.drop(b.Owner)
	}
	if d.dropped[owner] {
		return nil
	}
	o, err := d.of(owner)
	if err != nil || o.lacks {
		return err
	}
	err = o.apply(f.Body)
	if _, isWAL := f.Body.(stream.WAL); isWAL && err == nil {
		o.applied = f.Time
	}
	if errors.Is(err, wal.ErrHole) && o.stale {
		return nil
	}
	if errors.Is(err, wal.ErrHole) {
		return &holeError{owner, err}
	}
	return err
}

// holeError is the gap of a database, which ends at it. Everything else does not.
type holeError struct {
	database string
	err      error
}

func (e *holeError) Error() string {
	return fmt.Sprintf("%v: database %s: %v", errGap, e.database, e.err)
}
func (e *holeError) Unwrap() []error { return []error{errGap, e.err} }

func (o *restoredDatabase) apply(body stream.Body) error {
	switch b := body.(type) {
	case stream.WAL:
		return o.copy.WAL(int(b.Generation), b.Timeline, xlog.LSN(b.From), b.Bytes)
	case stream.WALFile:
		return o.copy.Put(int(b.Generation), b.Name, b.Content)
	case stream.File:
		return o.list(b.Kind, b.Name, b.Ref)
	case stream.FileDrop:
		delete(o.files, fetchKey{b.Kind, b.Name})
	}
	return nil
}

// drop removes a database that was deleted.
func (d *databaseRestorer) drop(owner string) error {
	if _, err := d.of(owner); err != nil {
		return err
	}
	delete(d.owners, owner)
	d.dropped[owner] = true
	if err := os.RemoveAll(backupsOf(d.dir, owner)); err != nil {
		return fmt.Errorf("remove a deleted database: %w", err)
	}
	return nil
}

// partialsAtOnce is how many beginnings of segments are fetched at a time.
const partialsAtOnce = 4

// finish implements restorer.
func (d *databaseRestorer) finish(ctx context.Context) error {
	err := parallel.Do(ctx, partialsAtOnce, maps.Keys(d.owners), func(ctx context.Context, owners <-chan string) error {
		for owner := range owners {
			if err := d.finishDatabase(ctx, owner, d.owners[owner]); err != nil {
				return fmt.Errorf("restore the WAL of database %s: %w", owner, err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for owner := range d.dropped {
		if err := removeFetchList(d.dir, owner); err != nil {
			return err
		}
	}
	return nil
}

// finishDatabase writes the beginnings of partial segments, makes everything durable and then the list.
func (d *databaseRestorer) finishDatabase(ctx context.Context, owner string, o *restoredDatabase) error {
	list := fetchList{Format: fetchFormat, Files: []fetchFile{}, Damaged: []string{}, Stale: o.stale}
	for name, e := range o.partial {
		err := d.writePartial(ctx, o.copy, e)
		if stream.Damaged(err) {
			if absent := d.store.CheckMarker(ctx); absent != nil {
				return fmt.Errorf("%w: %v", absent, err)
			}
			list.Damaged = append(list.Damaged, fmt.Sprintf("%s: %v", name, err)) // the WAL ends before it
			if f, err := parseWALName(name); err == nil {
				o.damaged = append(o.damaged, f)
			}
			continue
		}
		if err != nil {
			return err
		}
	}
	if err := os.MkdirAll(backupsOf(d.dir, owner), 0o700); err != nil {
		return fmt.Errorf("make directory of backups: %w", err)
	}
	if err := o.copy.Sync(); err != nil {
		return err
	}
	for _, dir := range []string{backupsOf(d.dir, owner), filepath.Dir(backupsOf(d.dir, owner)), d.dir} {
		if err := durable.SyncDir(durable.OS{}, dir); err != nil {
			return err
		}
	}
	for key, ref := range o.files {
		list.Files = append(list.Files, fetchFileOf(key, ref))
	}
	slices.SortFunc(list.Files, compareFetch)
	return list.write(d.dir, owner)
}

// writePartial writes the beginning of a partial segment.
func (d *databaseRestorer) writePartial(ctx context.Context, archive *wal.Copy, e stream.Entry) error {
	f, err := parseWALName(e.Name)
	if err != nil {
		return err
	}
	packed := io.NopCloser(io.Reader(bytes.NewReader(e.Data)))
	if !e.Ref.IsZero() {
		if packed, err = d.store.Open(ctx, e.Ref, 0, -1); err != nil {
			return err
		}
	}
	defer packed.Close()
	content := make([]byte, f.Length)
	z, err := zstd.NewReader(packed, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(64<<20))
	if err != nil {
		return fmt.Errorf("expand WAL: %w", err)
	}
	defer z.Close()
	if _, err := io.ReadFull(z, content); err != nil {
		return fmt.Errorf("expand WAL: %w", err)
	}
	return archive.Begin(f, content)
}

// fetchPath returns where a file belongs below the directory of a database's backups.
func fetchPath(backups, kind, name string) (string, error) {
	switch {
	case kind == KindRepository && repository.ValidName(name):
		return filepath.Join(backups, "repository", filepath.FromSlash(name)), nil
	case kind == KindWAL:
		if f, err := wal.ParseStored(name); err == nil {
			return f.Path(filepath.Join(backups, recovery.WALDirectory)), nil
		}
	}
	return "", fmt.Errorf("%w: %q is not the name of a file of a database's backups", stream.ErrCorrupt, name)
}
