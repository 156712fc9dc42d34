package offsite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"holdfast/blobstore"
	"holdfast/engine/meta"
	"holdfast/engine/offsite/stream"
)

const (
	// segmentPiece is the size of the pieces in which a checkpoint has a segment of the journal, and tailPiece that of
	// those of its last, incomplete piece while it grows. What is smaller is in the catalog.
	segmentPiece = 4 << 20
	tailPiece    = 256 << 10
	// smallPiece is the largest piece of a complete segment that is in the catalog.
	smallPiece = 16 << 10
)

// piece names a segment of the journal in the catalog: its mark tells it from one of another machine.
type piece struct {
	number uint32
	mark   string
}

func pieceOf(s blobstore.Segment) piece { return piece{s.Number, s.Mark} }

func (p piece) prefix() string { return fmt.Sprintf("%08x-%s-", p.number, p.mark) }

func (p piece) name(from int64) string { return fmt.Sprintf("%s%08x", p.prefix(), from) }

func parsePiece(name string) (p piece, from int64, err error) {
	parts := strings.Split(name, "-")
	if len(parts) == 3 {
		_, err = fmt.Sscanf(parts[0]+" "+parts[2], "%08x %08x", &p.number, &from)
		p.mark = parts[1]
	}
	if err != nil || p.name(from) != name {
		return p, from, fmt.Errorf("%w: piece of a journal %q", stream.ErrVersion, name)
	}
	return p, from, nil
}

// nextPiece returns the size of the piece of a segment at an offset. Pieces that are complete stay as they are while it grows.
func nextPiece(s blobstore.Segment, from int64) int64 {
	left := s.Size - from
	switch {
	case left >= segmentPiece:
		return segmentPiece
	case s.Complete:
		return left
	default:
		return min(left, tailPiece)
	}
}

// segments returns the entries of the journal, and forgets the pieces that larger ones have replaced. Of a segment that
// cannot be read, or is missing although objects need it, it returns what the store has. failed says which those are.
func (p *objectsPart) segments(ctx context.Context) (entries []stream.Entry, failed, err error) {
	here := map[uint32]bool{}
	for _, s := range p.core.Blobs.Journal() {
		some, err := p.segment(ctx, s)
		if errors.Is(err, blobstore.ErrNotFound) { // if it was compacted, the log has what lives
			continue
		}
		if err != nil && (ctx.Err() != nil || p.writer.Err() != nil) {
			return nil, nil, err
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("segment %d of the journal: %w", s.Number, err))
			some = p.storedPieces(s)
		}
		here[s.Number] = true
		entries = append(entries, some...)
	}
	missing, err := p.missingPieces(here)
	if len(missing) > 0 {
		failed = errors.Join(failed, fmt.Errorf("%d pieces of the journal, such as %s, whose segments objects need: %w", len(missing), missing[0].Name, blobstore.ErrNotFound))
	}
	entries = append(entries, missing...)
	p.forgetPieces(entries)
	p.mine = true
	return entries, failed, err
}

// forgetPieces forgets the pieces that the next checkpoint does not have.
func (p *objectsPart) forgetPieces(entries []stream.Entry) {
	current := map[string]bool{}
	for _, e := range entries {
		current[e.Name] = true
	}
	for name := range p.known.Names("", KindSegment) {
		if !current[name] {
			p.known.Drop("", KindSegment, name)
		}
	}
}

// storedPieces returns the entries of a segment that the store has.
func (p *objectsPart) storedPieces(s blobstore.Segment) []stream.Entry {
	return slices.DeleteFunc(p.known.Entries("", KindSegment), func(e stream.Entry) bool {
		stored, _, err := parsePiece(e.Name)
		return err != nil || !p.isOf(stored, s)
	})
}

// isOf reports whether a piece in the store is of a segment that is here. Of one that cannot be read, the mark is not known.
func (p *objectsPart) isOf(stored piece, s blobstore.Segment) bool {
	if s.Err != nil {
		return p.mine && stored.number == s.Number
	}
	return stored == pieceOf(s)
}

// missingPieces returns the entries that the store has of segments that are not here, although objects need them.
func (p *objectsPart) missingPieces(here map[uint32]bool) (missing []stream.Entry, err error) {
	if !p.mine {
		return nil, nil
	}
	err = p.core.Meta.View(func(tx *meta.Tx) error {
		for _, e := range p.known.Entries("", KindSegment) {
			stored, _, err := parsePiece(e.Name)
			if err == nil && !here[stored.number] && tx.SegmentUse(stored.number).Objects > 0 {
				missing = append(missing, e)
			}
		}
		return nil
	})
	return missing, err
}

func (p *objectsPart) segment(ctx context.Context, s blobstore.Segment) (entries []stream.Entry, err error) {
	if s.Err != nil {
		return nil, s.Err
	}
	f, err := p.core.Blobs.OpenSegment(s.Number)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for from := int64(0); from < s.Size; {
		n := nextPiece(s, from)
		e := stream.Entry{Kind: KindSegment, Name: pieceOf(s).name(from)}
		content := io.NewSectionReader(f, from, n)
		var known bool
		switch e.Ref, known = p.known.Get("", KindSegment, e.Name); {
		case n <= smallPiece || !s.Complete && n < tailPiece:
			e.Ref, e.Data = stream.Reference{}, make([]byte, n)
			_, err = io.ReadFull(content, e.Data)
		case known && e.Ref.Size == n && e.Ref.ID > 0:
		default:
			e.Ref, err = p.writer.Store(ctx, content)
		}
		if err != nil {
			return nil, err
		}
		p.known.PutEntry(e)
		entries, from = append(entries, e), from+n
	}
	return entries, nil
}

// journalSource is the journal, and what is removed from the blob store.
type journalSource struct {
	tap   *blobstore.Tap
	known *known
}

var _ stream.Source = journalSource{}

// Next implements stream.Source.
func (s journalSource) Next(_ context.Context, limit int, until time.Time) (frames []stream.Frame, err error) {
	for len(frames) == 0 {
		changes, err := s.tap.Next(limit, until)
		if err != nil || len(changes) == 0 {
			return nil, err
		}
		for _, c := range changes {
			if body := s.body(c); body != nil {
				frames = append(frames, stream.Frame{Time: c.Time, Body: body})
			}
		}
	}
	return frames, nil
}

// body returns the frame of a change, nil if the store has nothing that it changes.
func (s journalSource) body(c blobstore.Change) stream.Body {
	switch {
	case c.Removed != "":
		if _, known := s.known.Get("", KindBlob, string(c.Removed)); !known {
			return nil
		}
		s.known.Drop("", KindBlob, string(c.Removed))
		return stream.FileDrop{Kind: KindBlob, Name: string(c.Removed)}
	case len(c.Bytes) == 0:
		return stream.JournalDrop{Segment: uint64(c.Segment)}
	}
	return stream.Journal{Segment: uint64(c.Segment), From: uint64(c.From), Bytes: c.Bytes}
}

// Stored implements stream.Source.
func (journalSource) Stored(uint64) {}

// Stream implements stream.Named.
func (journalSource) Stream() stream.Stream { return stream.Stream{Kind: StreamObjects} }

// Waiting implements stream.Source.
func (s journalSource) Waiting() (w stream.Waiting) {
	w.Bytes, w.Oldest = s.tap.Waiting()
	return w
}
