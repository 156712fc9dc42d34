package offsite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/zeebo/blake3"

	"holdfast/backup/wal"
	"holdfast/backup/wal/xlog"
	"holdfast/engine/offsite/stream"
)

// walSource is the WAL of one database as a source of the log.
type walSource struct {
	owner string
	known *known // is told of the WAL that the log gets
	tap   *wal.Tap
}

// Next implements stream.Source.
func (s *walSource) Next(_ context.Context, limit int, until time.Time) ([]stream.Frame, error) {
	pieces, err := s.tap.Next(limit, until)
	if err != nil {
		return nil, fmt.Errorf("read the WAL of database %s: %w", s.owner, err)
	}
	frames := make([]stream.Frame, len(pieces))
	for i, p := range pieces {
		frames[i].Time = p.At
		if p.Name != "" {
			frames[i].Body = stream.WALFile{Owner: s.owner, Generation: uint64(p.Generation), Name: p.Name, Content: p.Content}
		} else {
			piece := stream.WAL{Owner: s.owner, Generation: uint64(p.Generation), Timeline: p.Timeline, From: uint64(p.From), Bytes: p.Bytes}
			s.known.addWAL(piece)
			frames[i].Body = piece
		}
	}
	return frames, nil
}

// Stored implements stream.Source.
func (s *walSource) Stored(uint64) {}

// Stream implements stream.Named.
func (s *walSource) Stream() stream.Stream { return stream.Stream{Kind: StreamWAL, Owner: s.owner} }

// unknownSince is before every commit.
var unknownSince = time.Unix(0, 0)

// Waiting implements stream.Source. A server acknowledges a commit before the archive has it.
func (s *walSource) Waiting() (w stream.Waiting) {
	w.Bytes, w.Oldest = s.tap.Waiting()
	if since, some := s.tap.Since(); some {
		w.Since = since
		if since.IsZero() {
			w.Since = unknownSince
		}
	}
	return w
}

// sent returns what the copy has: what the source before has read, if there was one, else what the store knows, unless that
// is another machine's. The checkpoint at the beginning of a run has the files of the archives that were there.
func (c *databaseCopy) sent(archive *wal.Archive, before *walSource, beginning bool) wal.Sent {
	stored := c.storedWAL(archive)
	sent := wal.Sent{At: time.Now(), Rest: beginning}
	if beginning {
		sent.At = c.known.Until()
	}
	sent.End = func(generation int, timeline uint32) (xlog.LSN, bool) {
		if before != nil {
			if end, some := before.tap.Read(generation, timeline); some {
				return end, true
			}
		}
		if c.known.foreign {
			return 0, false
		}
		end := max(stored[walStream{c.id, uint64(generation), timeline}], xlog.LSN(c.known.WALEnd(c.id, uint64(generation), timeline)))
		return end, end > 0
	}
	return sent
}

// storedWAL returns the ends of the WAL in the newest checkpoint.
func (c *databaseCopy) storedWAL(archive *wal.Archive) map[walStream]xlog.LSN {
	ends := map[walStream]xlog.LSN{}
	for name := range c.known.Names(c.id, KindWAL) {
		f, err := parseWALName(name)
		if err != nil {
			continue
		}
		g, err := archive.Generation(f.Generation)
		if err != nil {
			continue
		}
		if timeline, _, end, ok := f.Segment(g.SegmentSize); ok {
			key := walStream{c.id, uint64(f.Generation), timeline}
			ends[key] = max(ends[key], end)
		}
	}
	return ends
}

// walName returns the name of a file of the WAL archive in a checkpoint. That of a partial segment ends with its
// length, in hexadecimal.
func walName(f wal.StoredFile) string {
	if f.IsPartial() {
		return f.String() + "-" + strconv.FormatInt(f.Length, 16)
	}
	return f.String()
}

func parseWALName(name string) (f wal.StoredFile, err error) {
	base, length, partial := strings.Cut(name, "-")
	if f, err = wal.ParseStored(base); err != nil {
		return f, err
	}
	if f.IsPartial() != partial {
		return f, fmt.Errorf("%q is not the name of a file of a WAL archive", name)
	}
	if partial {
		f.Length, err = strconv.ParseInt(length, 16, 64)
	}
	return f, err
}

// walDir returns the directory of a database's WAL archive.
func (c *databaseCopy) walDir() string {
	return walOf(c.databasePart.dir, c.id)
}

// walEntries returns the state of the WAL archive, and stores the segments that the store lacks.
func (c *databaseCopy) walEntries(ctx context.Context) ([]stream.Entry, error) {
	before := c.failed
	for attempt := 0; ; attempt++ {
		files, err := c.archive.Stored()
		if err != nil {
			return nil, err
		}
		c.failed = before
		entries, skipped, err := c.filesOfWAL(ctx, files, attempt == maxAttempts)
		if errors.Is(err, fs.ErrNotExist) && attempt < maxAttempts {
			continue // a segment was compressed or pruned meanwhile
		}
		if err != nil {
			return nil, err
		}
		lost, err := c.lostWAL(ctx, files, skipped)
		if err != nil {
			return nil, err
		}
		entries = slices.Concat(entries, lost, c.beginningsOf(skipped))
		c.forgetWAL(entries)
		c.ownWAL = true
		return entries, nil
	}
}

// filesOfWAL returns the entries of some files of the WAL archive, and those that it skipped because they cannot be read. One that is
// not there is an error or, if all others are wanted in spite of it, skipped.
func (c *databaseCopy) filesOfWAL(ctx context.Context, files []wal.StoredFile, inSpite bool) (entries []stream.Entry, skipped []wal.StoredFile, err error) {
	for _, f := range files {
		e := stream.Entry{Owner: c.id, Kind: KindWAL, Name: walName(f), Data: f.Content}
		switch {
		case f.Content != nil:
		case f.IsPartial():
			e, err = c.partialEntry(ctx, e, f)
		default:
			e.Ref, err = c.segmentReference(ctx, e.Name, f)
		}
		if errors.Is(err, fs.ErrNotExist) && inSpite || errors.Is(err, errUnreadable) {
			c.skip(f.String(), err)
			skipped, err = append(skipped, f), nil
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		c.known.PutEntry(e) // whatever becomes of this checkpoint
		entries = append(entries, e)
	}
	return entries, skipped, nil
}

// segmentReference returns the reference of a full segment, which it stores unless the store has the same one. One of that
// name in an earlier checkpoint may be another machine's.
func (c *databaseCopy) segmentReference(ctx context.Context, name string, f wal.StoredFile) (ref stream.Reference, err error) {
	ref, known := c.known.Get(c.id, KindWAL, name)
	if !known || ref.ID == 0 || !c.same[name] && c.isReplaced(f, ref) {
		ref, err = c.storeFile(ctx, f.Path(c.walDir()))
	}
	if err == nil {
		c.same[name] = true
	}
	return ref, err
}

// isReplaced reports whether a full segment is intact and not the one that the store has. Of one that is damaged or gone, the
// copy keeps what it has.
func (c *databaseCopy) isReplaced(f wal.StoredFile, ref stream.Reference) bool {
	file, err := os.Open(f.Path(c.walDir()))
	if err != nil {
		return false
	}
	defer file.Close()
	return !sameContent(file, ref) && c.archive.CheckSegment(f) == nil
}

// beginningsOf returns what the copy keeps of segments that cannot be read.
func (c *databaseCopy) beginningsOf(skipped []wal.StoredFile) (entries []stream.Entry) {
	for _, f := range skipped {
		if begun, some := c.beginningOf(f); some {
			entries = append(entries, begun)
		}
	}
	return entries
}

// beginningOf returns the longest beginning of a segment that the store has, false for none.
func (c *databaseCopy) beginningOf(f wal.StoredFile) (longest stream.Entry, some bool) {
	var length int64
	for _, e := range c.known.Entries(c.id, KindWAL) {
		known, err := parseWALName(e.Name)
		if err == nil && known.IsPartial() && known.IsOf(f) && (!some || known.Length > length) {
			longest, length, some = e, known.Length, true
		}
	}
	return longest, some
}

// forgetWAL forgets the files that are not in the state any more.
func (c *databaseCopy) forgetWAL(entries []stream.Entry) {
	now := map[string]bool{}
	partial := map[string]stream.Entry{}
	for _, e := range entries {
		now[e.Name] = true
		if old, ok := c.partial[e.Name]; ok {
			partial[e.Name] = old
		}
	}
	c.partial = partial
	maps.DeleteFunc(c.same, func(name string, _ bool) bool { return !now[name] })
	for name := range c.known.Names(c.id, KindWAL) {
		if !now[name] {
			c.known.Drop(c.id, KindWAL, name)
		}
	}
}

// maxInlinePartial is the compressed size up to which a partial segment is part of the catalog.
const maxInlinePartial = 16 << 10

// partialEntry returns the entry of a partial segment: its valid bytes, compressed.
func (c *databaseCopy) partialEntry(ctx context.Context, e stream.Entry, f wal.StoredFile) (stream.Entry, error) {
	if same, ok := c.partial[e.Name]; ok {
		return same, nil
	}
	e, err := c.pack(ctx, e, f.Path(c.walDir()), f.Length)
	if err == nil {
		c.partial[e.Name] = e
	}
	return e, err
}

// pack adds the first bytes of a file, compressed, to an entry.
func (c *databaseCopy) pack(ctx context.Context, e stream.Entry, path string, length int64) (stream.Entry, error) {
	c.packing.Lock()
	defer c.packing.Unlock()
	packed, err := compressFile(path, length)
	if err != nil {
		return e, err
	}
	if len(packed) <= maxInlinePartial {
		e.Data = packed
	} else if ref, _ := c.known.Get(c.id, KindWAL, e.Name); ref.ID != 0 && ref.Size == int64(len(packed)) && ref.Hash == blake3.Sum256(packed) {
		e.Ref = ref
	} else if e.Ref, err = c.writer.Store(ctx, bytes.NewReader(packed)); err != nil {
		return e, err
	}
	return e, nil
}

// compressFile returns the first bytes of a file, compressed.
func compressFile(path string, length int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: %w", errUnreadable, err)
	}
	if err != nil {
		return nil, fmt.Errorf("copy WAL: %w", err)
	}
	defer f.Close()
	var packed bytes.Buffer
	z, err := zstd.NewWriter(&packed, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(1<<20))
	if err == nil {
		_, err = io.CopyN(z, f, length)
		err = errors.Join(err, z.Close())
	}
	if err != nil {
		return nil, fmt.Errorf("copy WAL: %w: %w", errUnreadable, err)
	}
	return packed.Bytes(), nil
}

// awayEntries returns the state of a database whose files a recovery has not fetched yet: they stay where they are in
// the store, and the WAL that came with the log is here.
func (c *databaseCopy) awayEntries(ctx context.Context) (entries []stream.Entry, err error) {
	list, err := readFetchList(c.dir, c.id)
	if err != nil {
		return nil, err
	}
	for _, f := range list.Files {
		entries = append(entries, stream.Entry{Owner: c.id, Kind: f.Kind, Name: f.Name, Ref: f.reference()})
	}
	if list.Stale {
		entries = append(entries, c.staleEntry())
	}
	files, err := wal.StoredIn(c.walDir())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	here := files[:0]
	for _, f := range files {
		if f.Content != nil || f.IsPartial() {
			here = append(here, f) // other segments are being fetched, and on the list
		}
	}
	more, skipped, err := c.filesOfWAL(ctx, here, false)
	return slices.Concat(entries, more, c.beginningsOf(skipped)), err
}
