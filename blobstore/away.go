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
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"holdfast/internal/durable"
)

// The file "away" lists files that are not on this disk yet but can be fetched (Options.Fetch): a line, then records of one
// size, sorted.
//
//	"holdfast away 1 <size of a location> <CRC-32C of the preceding text>"
//
//	 0  directory of the Ref, 4 bytes, and its id, 16 bytes
//	20  size of the content, 8 bytes
//	28  length of the location, 1 byte, and the location, with zeros to the size
//	    CRC-32C of the record, 4 bytes
//
// Numbers are big-endian. A file that is listed and was fetched is on the disk, so the list never changes.
const (
	awayFile    = "away"
	awayText    = "holdfast away 1 "
	awayHead    = len(awayText) + 2 + 1 + 8 + 1
	awayKey     = 4 + 16
	awayFixed   = awayKey + 8 + 1 + 4
	maxLocation = 255
)

// Away is a file that is not on this disk yet. Location is what the caller of Options.Fetch needs to find it.
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

// encode returns the record, with space for a location of that size.
func (a Away) encode(location int) []byte {
	key, _ := awayKeyOf(a.Ref)
	b := binary.BigEndian.AppendUint64(key[:], uint64(a.Size))
	b = append(append(b, byte(len(a.Location))), a.Location...)
	b = append(b, make([]byte, location-len(a.Location))...)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func decodeAway(b []byte) (Away, error) {
	end := len(b) - 4
	length := int(b[awayKey+8])
	if binary.BigEndian.Uint32(b[end:]) != crc32.Checksum(b[:end], castagnoli) || awayKey+9+length > end {
		return Away{}, fmt.Errorf("list of blobs that are away: %w", ErrDamaged)
	}
	return Away{
		Ref:      makeRef(binary.BigEndian.Uint32(b), hex.EncodeToString(b[4:awayKey])),
		Size:     int64(binary.BigEndian.Uint64(b[awayKey:])),
		Location: bytes.Clone(b[awayKey+9 : awayKey+9+length]),
	}, nil
}

// writeAway writes the list into the store in dir.
func writeAway(fsys durable.FS, dir string, list []Away) error {
	location := 0
	for _, a := range list {
		if _, ok := awayKeyOf(a.Ref); !ok || len(a.Location) > maxLocation {
			return fmt.Errorf("list a blob that is away: %w: %.80q", ErrBadRef, string(a.Ref))
		}
		location = max(location, len(a.Location))
	}
	slices.SortFunc(list, func(a, b Away) int { return cmp.Compare(a.Ref, b.Ref) })
	write := func(f durable.File) error {
		w := bufio.NewWriterSize(f, 1<<20)
		_, err := io.WriteString(w, awayLine(location))
		for _, a := range list {
			if err == nil {
				_, err = w.Write(a.encode(location))
			}
		}
		return errors.Join(err, w.Flush())
	}
	return durable.Publish(fsys, filepath.Join(dir, awayFile), 0o600, write)
}

// awayList is an open list.
type awayList struct {
	file   *os.File
	record int64 // size
	count  int64
}

// openAway opens the list of the store in dir, nil if there is none.
func openAway(dir string) (*awayList, error) {
	f, err := os.Open(filepath.Join(dir, awayFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // no list
	}
	if err != nil {
		return nil, fmt.Errorf("open the list of blobs that are away: %w", err)
	}
	head := make([]byte, awayHead)
	_, err = io.ReadFull(f, head)
	info, statErr := f.Stat()
	location := uint64(0)
	if err = errors.Join(err, statErr); err == nil {
		location, err = strconv.ParseUint(string(head[len(awayText):len(awayText)+2]), 16, 8)
	}
	if err != nil || string(head) != awayLine(int(location)) {
		return nil, errors.Join(fmt.Errorf("list of blobs that are away: %w", ErrDamaged), err, f.Close())
	}
	l := &awayList{file: f, record: int64(awayFixed) + int64(location)}
	l.count = (info.Size() - int64(awayHead)) / l.record
	return l, nil
}

// at returns the record with that number.
func (l *awayList) at(n int64) (Away, error) {
	b := make([]byte, l.record)
	if _, err := l.file.ReadAt(b, int64(awayHead)+n*l.record); err != nil {
		return Away{}, fmt.Errorf("read the list of blobs that are away: %w", err)
	}
	return decodeAway(b)
}

// find returns the record of a Ref, or ErrNotFound.
func (l *awayList) find(ref Ref) (Away, error) {
	low, high := int64(0), l.count
	for low < high {
		middle := (low + high) / 2
		a, err := l.at(middle)
		if err != nil {
			return a, err
		}
		switch cmp.Compare(a.Ref, ref) {
		case 0:
			return a, nil
		case -1:
			low = middle + 1
		default:
			high = middle
		}
	}
	return Away{}, ErrNotFound
}

// findAway returns what is known of a file that is not on this disk, or ErrNotFound.
func (s *Store) findAway(ref Ref) (Away, error) {
	list := s.away.Load()
	if list == nil {
		return Away{}, ErrNotFound
	}
	return list.find(ref)
}

// IsAway reports whether a file is not on this disk but can be fetched.
func (s *Store) IsAway(ref Ref) bool {
	if s.away.Load() == nil || s.onDisk(ref) {
		return false
	}
	_, err := s.findAway(ref)
	return err == nil
}

func (s *Store) onDisk(ref Ref) bool {
	path, err := ref.path(s.blobs)
	if err != nil {
		return false
	}
	_, err = os.Lstat(path)
	return err == nil
}

// Has reports whether a blob is there or away. Of a blob in the journal it looks only at the size of the segment.
func (s *Store) Has(ref Ref) bool {
	if at, ok := ref.position(); ok {
		info, err := os.Stat(s.journal.path(at.Segment()))
		return err == nil && at.offset() < info.Size()
	}
	return s.onDisk(ref) || s.IsAway(ref)
}

// EachAway calls fn for each file that is away, until fn fails, and returns that error unchanged.
func (s *Store) EachAway(fn func(Away) error) error {
	list := s.away.Load()
	if list == nil {
		return nil
	}
	for n := int64(0); n < list.count; n++ {
		a, err := list.at(n)
		if err != nil {
			return err
		}
		if s.onDisk(a.Ref) {
			continue
		}
		if err := fn(a); err != nil {
			return err
		}
	}
	return nil
}

// NoneAway removes the list once nothing on it is needed any more.
func (s *Store) NoneAway() error {
	if s.away.Swap(nil) == nil { // its file stays open for those who read it
		return nil
	}
	err := s.fs.Remove(filepath.Join(filepath.Dir(s.blobs), awayFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the list of blobs that are away: %w", err)
	}
	return nil
}
