package blobstore

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"os"
	"slices"
	"strconv"
	"strings"

	"holdfast/internal/durable"
)

// The directory "away" has lists of files that need not be on this disk, because they can be fetched (Options.Fetch). A
// list is a line, then records of one size, sorted.
//
//	"holdfast away 1 <size of a location> <CRC-32C of the preceding text>"
//
//	 0  directory of the Ref, 4 bytes, and its id, 16 bytes
//	20  size of the content, 8 bytes
//	28  length of the location, 1 byte, and the location, with zeros to the size
//	    CRC-32C of the record, 4 bytes
//	    0, or 1 once the blob was removed, 1 byte
//
// Numbers are big-endian. A damaged record is passed over, and costs no other one: of a file that it may name, only that it is not
// known whether it is listed. A file that is listed and is on the disk is a copy that can be evicted at any time.
const (
	awayDirectory = "away"
	awayText      = "holdfast away 1 "
	awayHead      = len(awayText) + 2 + 1 + 8 + 1
	awayKey       = 4 + 16
	awayFixed     = awayKey + 8 + 1 + 4 + 1
	maxLocation   = 255
	// maxTried is how many records are tried to find their size.
	maxTried = 100
)

// Away is a file that can be fetched. Location is what the caller of Options.Fetch needs to find it.
type Away struct {
	Ref      Ref
	Size     int64 // of the content, in bytes
	Location []byte
}

func awayLine(location int) string {
	text := fmt.Sprintf("%s%02x", awayText, location)
	return fmt.Sprintf("%s %08x\n", text, crc32.Checksum([]byte(text), castagnoli))
}

// awayKeyOf returns the key of a Ref's record, or false if it is no Ref of a file.
func awayKeyOf(ref Ref) (key [awayKey]byte, ok bool) {
	if !refForm.MatchString(string(ref)) {
		return key, false
	}
	_, err := hex.Decode(key[:], []byte(ref[:8]))
	_, idErr := hex.Decode(key[4:], []byte(ref[9:]))
	return key, err == nil && idErr == nil
}

// valid returns ErrBadRef for what cannot be listed.
func (a Away) valid() error {
	if _, ok := awayKeyOf(a.Ref); !ok || len(a.Location) > maxLocation {
		return fmt.Errorf("%w: %.80q", ErrBadRef, string(a.Ref))
	}
	return nil
}

// encode returns the record, with space for a location of that size.
func (a Away) encode(location int) []byte {
	key, _ := awayKeyOf(a.Ref)
	b := binary.BigEndian.AppendUint64(key[:], uint64(a.Size))
	b = append(append(b, byte(len(a.Location))), a.Location...)
	b = append(b, make([]byte, location-len(a.Location))...)
	return append(binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli)), 0)
}

// decodeAway decodes a record, and reports whether the blob was removed.
func decodeAway(b []byte) (a Away, removed bool, err error) {
	end := len(b) - 5
	length := int(b[awayKey+8])
	if binary.BigEndian.Uint32(b[end:]) != crc32.Checksum(b[:end], castagnoli) || awayKey+9+length > end {
		return a, false, fmt.Errorf("list of blobs that are away: %w", ErrDamaged)
	}
	return Away{
		Ref:      makeRef(binary.BigEndian.Uint32(b), hex.EncodeToString(b[4:awayKey])),
		Size:     int64(binary.BigEndian.Uint64(b[awayKey:])),
		Location: bytes.Clone(b[awayKey+9 : awayKey+9+length]),
	}, b[end+4] == 1, nil
}

// awayFile is the file of a list, *os.File but in tests.
type awayFile interface {
	io.ReaderAt
	io.ReadCloser
}

// awayList is an open list.
type awayList struct {
	path   string
	file   awayFile
	record int64 // size
	count  int64
	span   awaySpan
}

// awaySpan is which lists, by number, a list was merged from. It names the list's file.
type awaySpan struct{ first, last uint32 }

func (s awaySpan) name() string { return directoryName(s.first) + "-" + directoryName(s.last) }

func parseAwaySpan(name string) (s awaySpan, ok bool) {
	first, last, _ := strings.Cut(name, "-")
	var okLast bool
	s.first, ok = parseDirectoryName(first)
	s.last, okLast = parseDirectoryName(last)
	return s, ok && okLast && s.first <= s.last
}

// writeAway publishes a list of sorted records, whose locations have at most that size. One that cannot be read gets a damaged one
// in its place.
func writeAway(fsys durable.FS, path string, location int, records iter.Seq2[Away, error]) error {
	return durable.Publish(fsys, path, 0o600, func(f durable.File) error {
		w := bufio.NewWriterSize(f, 1<<20)
		_, err := io.WriteString(w, awayLine(location))
		for a, readErr := range records {
			record := a.encode(location)
			if isDamage(readErr) {
				record, readErr = make([]byte, len(record)), nil // its checksum is wrong
			}
			if err = errors.Join(err, readErr); err != nil {
				return err
			}
			_, err = w.Write(record)
		}
		return errors.Join(err, w.Flush())
	})
}

// sortAway sorts a list, and returns the size of the longest location.
func sortAway(list []Away) (location int) {
	slices.SortFunc(list, func(a, b Away) int { return cmp.Compare(a.Ref, b.Ref) })
	for _, a := range list {
		location = max(location, len(a.Location))
	}
	return location
}

// eachOf yields a slice.
func eachOf(list []Away) iter.Seq2[Away, error] {
	return func(yield func(Away, error) bool) {
		for _, a := range list {
			if !yield(a, nil) {
				return
			}
		}
	}
}

func openAway(path string, span awaySpan) (*awayList, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open a list of blobs that are away: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open a list of blobs that are away: %w", err), f.Close())
	}
	l := &awayList{path: path, file: f, span: span}
	if err := l.measure(info.Size()); err != nil {
		return nil, errors.Join(fmt.Errorf("list of blobs that are away: %w", err), f.Close())
	}
	return l, nil
}

// measure finds the size of the records and their number, in a list of that size: by its first line or, if that is damaged, by
// a record.
func (l *awayList) measure(size int64) error {
	head := make([]byte, awayHead)
	_, err := io.ReadFull(l.file, head)
	location := uint64(0)
	if err == nil {
		location, err = strconv.ParseUint(string(head[len(awayText):len(awayText)+2]), 16, 8)
	}
	l.setLocation(int(location), size)
	if err == nil && string(head) == awayLine(int(location)) {
		return nil
	}
	for location := range maxLocation + 1 {
		l.setLocation(location, size)
		if int64(awayHead)+l.count*l.record != size {
			continue
		}
		for n := range min(l.count, maxTried) {
			if _, _, err := l.at(l.count - 1 - n); err == nil {
				return nil
			}
		}
	}
	return errors.Join(ErrDamaged, err)
}

func (l *awayList) setLocation(location int, size int64) {
	l.record = int64(awayFixed) + int64(location)
	l.count = max(0, size-int64(awayHead)) / l.record
}

// location returns the size that locations have at most.
func (l *awayList) location() int { return int(l.record) - awayFixed }

// at returns the record with that number.
func (l *awayList) at(n int64) (a Away, removed bool, err error) {
	b := make([]byte, l.record)
	if _, err := l.file.ReadAt(b, int64(awayHead)+n*l.record); err != nil {
		return a, false, fmt.Errorf("read a list of blobs that are away: %w", err)
	}
	return decodeAway(b)
}

// isWhole reports whether every record can be read.
func (l *awayList) isWhole() bool {
	for _, err := range l.each() {
		if isDamage(err) {
			return false
		}
	}
	return true
}

// awayAtOnce is about how many bytes of a list are read at a time.
const awayAtOnce = 256 << 10

// each yields the records of blobs that were not removed, with an error for each record that is damaged or that the disk does not
// give back (isDamage). It ends with any other error.
func (l *awayList) each() iter.Seq2[Away, error] {
	return func(yield func(Away, error) bool) {
		buf := make([]byte, max(1, awayAtOnce/l.record)*l.record)
		for first := int64(0); first < l.count; {
			b := buf[:min(int64(len(buf)), (l.count-first)*l.record)]
			_, unread := l.file.ReadAt(b, int64(awayHead)+first*l.record)
			for ; len(b) > 0; b, first = b[l.record:], first+1 {
				var a Away
				var removed bool
				var err error
				if unread == nil {
					a, removed, err = decodeAway(b[:l.record])
				} else { // the others are read one by one
					a, removed, err = l.at(first)
				}
				if !removed && !yield(a, err) || err != nil && !isDamage(err) {
					return
				}
			}
		}
	}
}

// find returns the record of a Ref and its number, or ErrNotFound, also if the blob was removed. If the record may be one that is
// damaged or that the disk does not give back, the error says that too (isDamage).
func (l *awayList) find(ref Ref) (found Away, number int64, err error) {
	missing := ErrNotFound // why nothing at high is known to be the record
	low, high := int64(0), l.count
	for low < high {
		middle := (low + high) / 2
		n := middle
		a, removed, err := l.at(n)
		damage := err
		for isDamage(err) && n+1 < high {
			n++
			a, removed, err = l.at(n)
		}
		switch {
		case err != nil && !isDamage(err):
			return a, 0, err
		case err == nil && a.Ref == ref && removed:
			return Away{}, 0, ErrNotFound
		case err == nil && a.Ref == ref:
			return a, n, nil
		case err == nil && a.Ref < ref:
			low = n + 1
		default: // it is before the middle, or one of those that cannot be read from there on
			high, missing = middle, ErrNotFound
			if isDamage(damage) {
				missing = fmt.Errorf("%w: %w", ErrNotFound, damage)
			}
		}
	}
	return Away{}, 0, missing
}
