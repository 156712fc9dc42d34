package offsite

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/zeebo/blake3"

	"holdfast/backup/repository"
	"holdfast/backup/wal"
	"holdfast/blobstore"
	"holdfast/engine/offsite/stream"
)

// known is what the store has already: the entries of the newest checkpoint, with the
// log after it applied. The parts keep it true when they store and drop. It is safe
// for concurrent use.
type known struct {
	repository string // its id
	// foreign means that another machine wrote it, from which this one took over: WAL of the same position may differ.
	foreign bool
	// own means that the newest checkpoint and the log after it are of this machine: what they have and the disk lacks was here.
	own bool

	log *storedLog // what follows the newest checkpoint, nil if this was not read from a store

	mu     sync.RWMutex
	owners map[string]map[item]stored
	until  time.Time // of the newest frame, or of the checkpoint
	wal    map[walStream]walRange
	blobs  map[uint64]journalEnd
	// waiting are the files whose frames are not stored yet, by the number of the frame.
	waiting map[ownedName]uint64
}

type ownedName struct{ owner, name string }

// item is a thing of an owner.
type item struct{ kind, name string }

// stored is where the store has an item: in a file or, with data, in the catalog of the newest checkpoint or the log.
type stored struct {
	ref  stream.Reference
	data []byte
}

// walStream is a log that grows.
type walStream struct {
	owner      string
	generation uint64
	timeline   uint32
}

// walRange is the WAL of a stream that only the log after the newest checkpoint has. It may be empty, and have gaps: it has at most
// so many bytes. What is lacking here was looked for in it up to read.
type walRange struct{ from, to, read, bytes uint64 }

// storedLog is the log after a checkpoint, which was the newest when a writer began.
type storedLog struct {
	repository *stream.Repository
	since      *stream.Checkpoint

	reading sync.Mutex // held while history is read
	history *stream.History
}

// journalEnd is up to where the log has a segment of the journal, and its mark if the log has
// its beginning.
type journalEnd struct {
	offset uint64
	mark   string
}

func newKnown() *known {
	return &known{owners: map[string]map[item]stored{}, wal: map[walStream]walRange{}, blobs: map[uint64]journalEnd{}, waiting: map[ownedName]uint64{}}
}

// readKnown reads what the store has: a checkpoint, nil for none, and the log after it.
// A log that is damaged ends there.
func readKnown(ctx context.Context, r *stream.Repository, h *stream.History, c *stream.Checkpoint) (*known, error) {
	k := newKnown()
	k.log = &storedLog{repository: r, since: c, history: h}
	if c != nil {
		k.until = c.Time
		for e, err := range r.Catalog(ctx, c) {
			if err != nil {
				return nil, err
			}
			k.PutEntry(e)
		}
	}
	for f, err := range h.Frames(ctx, c, time.Time{}) {
		if stream.Damaged(err) {
			break
		}
		if err != nil {
			return nil, err
		}
		k.apply(f)
	}
	return k, nil
}

// apply notes a frame of the log.
func (k *known) apply(f stream.Frame) {
	if f.Time.After(k.until) {
		k.until = f.Time
	}
	switch b := f.Body.(type) {
	case stream.File:
		k.Put(b.Owner, b.Kind, b.Name, b.Ref)
	case stream.FileDrop:
		k.Drop(b.Owner, b.Kind, b.Name)
	case stream.OwnerDrop:
		k.DropOwner(b.Owner)
	case stream.WAL:
		k.addWAL(b)
	case stream.WALFile:
		f := wal.StoredFile{Generation: int(b.Generation), Name: b.Name}
		k.PutEntry(stream.Entry{Owner: b.Owner, Kind: KindWAL, Name: walName(f), Data: b.Content})
	case stream.Journal:
		end := journalEnd{b.From + uint64(len(b.Bytes)), k.blobs[b.Segment].mark}
		if b.From == 0 {
			end.mark = blobstore.MarkOf(b.Bytes)
		}
		k.blobs[b.Segment] = end
	case stream.JournalDrop:
		delete(k.blobs, b.Segment)
	}
}

// addWAL notes that the log has a piece of WAL, or that the writer is about to store it.
func (k *known) addWAL(b stream.WAL) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := walStream{b.Owner, b.Generation, b.Timeline}
	had, some := k.wal[s]
	if !some {
		had.from = b.From
	}
	length := uint64(len(b.Bytes))
	k.wal[s] = walRange{min(had.from, b.From), b.From + length, min(had.read, b.From), had.bytes + length}
}

// trimWAL notes that the log after the newest checkpoint has no WAL before the ends of some ranges.
func (k *known) trimWAL(ranges map[walStream]walRange) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for s, had := range ranges {
		if now, some := k.wal[s]; some && now.from < had.to {
			now.from, now.bytes = had.to, now.bytes-min(now.bytes, had.bytes)
			k.wal[s] = now
		}
	}
}

// readWAL notes that what is lacking here was looked for in the log up to the ends of some ranges.
func (k *known) readWAL(ranges map[walStream]walRange) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for s, had := range ranges {
		if now, some := k.wal[s]; some {
			now.read = max(now.read, had.to)
			k.wal[s] = now
		}
	}
}

// Put notes that the store has a file, or that the newest checkpoint has an entry.
func (k *known) Put(owner, kind, name string, r stream.Reference) {
	k.put(owner, item{kind, name}, stored{ref: r})
}

// PutEntry notes that the newest checkpoint, or the log after it, has an entry. It keeps the content of one whose file may be lost here, which is small.
func (k *known) PutEntry(e stream.Entry) {
	s := stored{ref: referenceOf(e)}
	if e.Kind == KindWAL || e.Kind == KindSegment || e.Kind == KindSecret {
		s.data = e.Data
	}
	k.put(e.Owner, item{e.Kind, e.Name}, s)
}

func (k *known) put(owner string, i item, s stored) {
	k.mu.Lock()
	defer k.mu.Unlock()
	items := k.owners[owner]
	if items == nil {
		items = map[item]stored{}
		k.owners[owner] = items
	}
	items[i] = s
}

// Get returns the reference of a file, and whether it is known.
func (k *known) Get(owner, kind, name string) (stream.Reference, bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	s, ok := k.owners[owner][item{kind, name}]
	return s.ref, ok
}

// Drop notes that a file is not needed any more.
func (k *known) Drop(owner, kind, name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.owners[owner], item{kind, name})
}

// DropOwner notes that nothing of an owner is needed any more.
func (k *known) DropOwner(owner string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.owners, owner)
	maps.DeleteFunc(k.wal, func(s walStream, _ walRange) bool { return s.owner == owner })
}

// Names returns the references of an owner's files of a kind, by name.
func (k *known) Names(owner, kind string) map[string]stream.Reference {
	k.mu.RLock()
	defer k.mu.RUnlock()
	names := map[string]stream.Reference{}
	for i, s := range k.owners[owner] {
		if i.kind == kind {
			names[i.name] = s.ref
		}
	}
	return names
}

// Entries returns the entries of an owner's things of a kind that the store has.
func (k *known) Entries(owner, kind string) (entries []stream.Entry) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	for i, s := range k.owners[owner] {
		e := stream.Entry{Owner: owner, Kind: kind, Name: i.name, Data: s.data}
		if s.ref.ID != 0 {
			e.Ref = s.ref
		}
		if i.kind == kind && (e.Data != nil || e.Ref.ID != 0) {
			entries = append(entries, e)
		}
	}
	return entries
}

// hasBackup reports whether the store has a backup of an owner whole: its manifest comes last.
func (k *known) hasBackup(owner, backup string) bool {
	name := repository.ManifestName(backup)
	k.mu.RLock()
	defer k.mu.RUnlock()
	_, ok := k.owners[owner][item{KindRepository, name}]
	_, waits := k.waiting[ownedName{owner, name}]
	return ok && !waits
}

// waits notes that the frame about a file is the nth of those about files, and is not stored yet.
func (k *known) waits(owner, name string, n uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.waiting[ownedName{owner, name}] = n
}

// framesStored notes that the first n frames about files are stored.
func (k *known) framesStored(n uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.waiting, func(_ ownedName, at uint64) bool { return at <= n })
}

// Owners returns all owners that have files.
func (k *known) Owners() []string {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return slices.Collect(maps.Keys(k.owners))
}

// WALEnd returns the LSN up to which the log has the WAL of a database; 0 if it had none after the newest checkpoint when the writer
// began, and got none since.
func (k *known) WALEnd(owner string, generation uint64, timeline uint32) uint64 {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.wal[walStream{owner, generation, timeline}].to
}

// ofLog returns the WAL of a database that only the log after the newest checkpoint has.
func (k *known) ofLog(owner string) map[walStream]walRange {
	k.mu.RLock()
	defer k.mu.RUnlock()
	ranges := map[walStream]walRange{}
	for s, has := range k.wal {
		if s.owner == owner {
			ranges[s] = has
		}
	}
	return ranges
}

// lastGeneration returns the highest generation that the store has of a database's WAL archive, 0 for none.
func (k *known) lastGeneration(owner string) (last int) {
	for name := range k.Names(owner, KindWAL) {
		if f, err := parseWALName(name); err == nil {
			last = max(last, f.Generation)
		}
	}
	k.mu.RLock()
	defer k.mu.RUnlock()
	for s := range k.wal {
		if s.owner == owner {
			last = max(last, int(s.generation))
		}
	}
	return last
}

// Until returns the moment that the store had when the writer began, zero for none.
func (k *known) Until() time.Time { return k.until }

// JournalEnd is WALEnd for a segment of the blob store's journal. mark is that of the segment, if it is known.
func (k *known) JournalEnd(segment uint64) (offset uint64, mark string) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	end := k.blobs[segment]
	return end.offset, end.mark
}

// referenceOf returns the reference of an entry. That of an inline one has only size and hash.
func referenceOf(e stream.Entry) stream.Reference {
	if !e.Ref.IsZero() {
		return e.Ref
	}
	return stream.Reference{Size: int64(len(e.Data)), Hash: blake3.Sum256(e.Data)}
}
