package repository

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sort"

	"github.com/zeebo/blake3"
)

// index is an index file, whose entries are read from disk when needed. It describes the records of one session or,
// after a merge, of several.
//
//	header | entries | packs | spans | trailer | BLAKE3 of all before
type index struct {
	name    string // relative to the repository
	number  uint32 // of the index and its packs
	f       *stored
	size    int64
	entries uint32
	packs   []packInfo
	spans   []span
}

// packInfo describes a pack in an index.
type packInfo struct {
	number uint32
	size   int64
	digest Hash
}

// span is a range of count records of a session, starting at ordinal first. Their entries are consecutive, starting
// at position at.
type span struct{ session, first, count, at uint32 }

const (
	packInfoSize = 4 + 8 + digestSize
	spanSize     = 12
	trailerSize  = 4 + 4 + 4 + 4 // entries, packs, spans, CRC-32C of packs, spans and these numbers
)

// loadIndex opens an index and checks everything except the entries, which have their own checksums.
func (r *Repository) loadIndex(number uint32) (*index, error) {
	name := indexName(number)
	f, err := r.openStored(name)
	if err != nil {
		return nil, err
	}
	x := &index{name: name, number: number, f: f}
	if err := x.load(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return x, nil
}

func (x *index) load() error {
	info, err := x.f.Stat()
	if err != nil {
		return err
	}
	x.size = info.Size()
	if x.size < headerSize+trailerSize+digestSize {
		return damaged(x.name, fmt.Sprintf("it has only %d bytes", x.size))
	}
	head := make([]byte, headerSize)
	if _, err := x.f.ReadAt(head, 0); err != nil {
		return err
	}
	if err := checkHeader(x.name, head, magicIndex, x.number, 0); err != nil {
		return err
	}
	return x.loadTables()
}

func (x *index) loadTables() error {
	trailer := make([]byte, trailerSize)
	end := x.size - digestSize
	if _, err := x.f.ReadAt(trailer, end-trailerSize); err != nil {
		return err
	}
	entries, packs, spans := binary.LittleEndian.Uint32(trailer), binary.LittleEndian.Uint32(trailer[4:]), binary.LittleEndian.Uint32(trailer[8:])
	begin := headerSize + int64(entries)*entrySize
	tables := int64(packs)*packInfoSize + int64(spans)*spanSize
	if begin+tables+trailerSize != end {
		return damaged(x.name, "its size does not match its tables")
	}
	b := make([]byte, tables)
	if _, err := x.f.ReadAt(b, begin); err != nil {
		return err
	}
	if crc32.Checksum(append(b[:tables:tables], trailer[:12]...), castagnoli) != binary.LittleEndian.Uint32(trailer[12:]) {
		return damaged(x.name, "the checksum of its tables is wrong")
	}
	if spans == 0 {
		return damaged(x.name, "it has no records")
	}
	x.entries = entries
	for ; packs > 0; packs, b = packs-1, b[packInfoSize:] {
		p := packInfo{number: binary.LittleEndian.Uint32(b), size: int64(binary.LittleEndian.Uint64(b[4:]))}
		copy(p.digest[:], b[12:])
		x.packs = append(x.packs, p)
	}
	at := uint32(0)
	for ; spans > 0; spans, b = spans-1, b[spanSize:] {
		s := span{binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint32(b[8:]), at}
		x.spans, at = append(x.spans, s), at+s.count
	}
	return nil
}

// sessions returns the sessions that have records in the index, in order.
func (x *index) sessions() (all []uint32) {
	for _, s := range x.spans {
		if len(all) == 0 || all[len(all)-1] != s.session {
			all = append(all, s.session)
		}
	}
	return all
}

// position returns the position of a record's entry, and the number of entries in its span from there on, including
// itself.
func (x *index) position(ref Ref) (at, following uint32, ok bool) {
	n := sort.Search(len(x.spans), func(i int) bool {
		s := &x.spans[i]
		return s.session > ref.Session || s.session == ref.Session && s.first > ref.Ordinal
	}) - 1
	if n < 0 || x.spans[n].session != ref.Session || ref.Ordinal-x.spans[n].first >= x.spans[n].count {
		return 0, 0, false
	}
	into := ref.Ordinal - x.spans[n].first
	return x.spans[n].at + into, x.spans[n].count - into, true
}

// read returns the entries of consecutive records starting at ref: at least one, and at most count, as many as fit
// into buf and can be read.
func (x *index) read(ref Ref, count uint32, buf []byte) ([]byte, error) {
	at, following, ok := x.position(ref)
	if !ok {
		return nil, damaged(x.name, fmt.Sprintf("it lacks record %d of session %d, which a backup needs", ref.Ordinal, ref.Session))
	}
	n := min(following, count, uint32(len(buf)/entrySize))
	got, err := x.f.ReadAt(buf[:n*entrySize], headerSize+int64(at)*entrySize)
	if err != nil && got < entrySize {
		return nil, fmt.Errorf("read %s: %w", x.name, err)
	}
	return buf[:got/entrySize*entrySize], nil
}

// each calls visit for each entry in order. It skips damaged entries and returns the first damage at the end.
func (x *index) each(visit func(Ref, entry) error) error { return x.eachIn(x.spans, visit) }

// of calls visit for each entry of a session in order.
func (x *index) of(session uint32, visit func(Ref, entry) error) error {
	first := sort.Search(len(x.spans), func(i int) bool { return x.spans[i].session >= session })
	past := sort.Search(len(x.spans), func(i int) bool { return x.spans[i].session > session })
	return x.eachIn(x.spans[first:past], visit)
}

func (x *index) eachIn(spans []span, visit func(Ref, entry) error) error {
	var damage error // the first
	buf := make([]byte, entrySize*1024)
	for _, s := range spans {
		for done := uint32(0); done < s.count; {
			b, err := x.read(Ref{s.session, s.first + done}, s.count-done, buf)
			if errors.Is(err, ErrDamaged) {
				damage = cmp.Or(damage, err)
				done++
				continue
			}
			if err != nil {
				return err
			}
			for ; len(b) > 0; b, done = b[entrySize:], done+1 {
				e, err := parseEntry(x.name, x.number, b)
				if err != nil {
					damage = cmp.Or(damage, err)
				} else if err := visit(Ref{s.session, s.first + done}, e); err != nil {
					return err
				}
			}
		}
	}
	return damage
}

// check reads the whole file and verifies its digest.
func (x *index) check() error {
	h := blake3.New()
	body := io.NewSectionReader(x.f, 0, x.size-digestSize)
	if _, err := io.Copy(h, body); err != nil {
		return fmt.Errorf("read %s: %w", x.name, err)
	}
	var want, got Hash
	if _, err := x.f.ReadAt(want[:], x.size-digestSize); err != nil {
		return fmt.Errorf("read %s: %w", x.name, err)
	}
	if h.Sum(got[:0]); got != want {
		return damaged(x.name, "its digest is wrong")
	}
	return nil
}

func (x *index) close() error { return x.f.Close() }
