package wal

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"holdfast/backup/wal/xlog"
)

// StoredFile is a file of an archive, for a copy of it. Summaries are not among them, since they can be rebuilt.
type StoredFile struct {
	Generation int
	Name       string // in the directory of the generation

	Content []byte // of a generation file or history file, whole
	Length  int64  // of a partial segment: the valid bytes
}

// PartialOf returns the first bytes of a segment as a partial segment.
func PartialOf(generation int, timeline uint32, n, segmentSize uint64, length int64) StoredFile {
	return StoredFile{Generation: generation, Name: xlog.SegmentName(timeline, n, segmentSize) + partialSuffix, Length: length}
}

// IsPartial reports whether it is a partial segment, which grows.
func (f StoredFile) IsPartial() bool { return strings.HasSuffix(f.Name, partialSuffix) }

// Path returns the file's path in an archive.
func (f StoredFile) Path(archive string) string {
	return filepath.Join(archive, strconv.Itoa(f.Generation), f.Name)
}

// IsOf reports whether two files are of the same segment: whole, or its beginning.
func (f StoredFile) IsOf(other StoredFile) bool {
	segment, _, _ := strings.Cut(f.Name, ".")
	same, _, _ := strings.Cut(other.Name, ".")
	return f.Generation == other.Generation && segment == same && !f.isSmall() && !other.isSmall()
}

// Segment returns the timeline and the range of the WAL in a segment, false for another file.
func (f StoredFile) Segment(segmentSize uint64) (timeline uint32, from, to xlog.LSN, ok bool) {
	name, suffix, _ := strings.Cut(f.Name, ".")
	if suffix != compressedSuffix[1:] && suffix != partialSuffix[1:] {
		return 0, 0, 0, false
	}
	timeline, n, ok := xlog.ParseSegmentName(name, segmentSize)
	from = xlog.LSN(n * segmentSize)
	if to = from + xlog.LSN(f.Length); !f.IsPartial() {
		to = from + xlog.LSN(segmentSize)
	}
	return timeline, from, to, ok
}

// Stored returns the files of the archive as they are durable. A segment may be compressed or pruned right after it.
// The files of damaged generations are as they are on disk.
func (a *Archive) Stored() ([]StoredFile, error) {
	all, dirs := a.segmentFiles()
	for number, names := range dirs {
		for _, name := range names {
			f := StoredFile{Generation: number, Name: name}
			content, err := os.ReadFile(f.Path(a.dir))
			if err != nil {
				return nil, fmt.Errorf("list WAL archive: %w", err)
			}
			f.Content = content
			all = append(all, f)
		}
	}
	for number := range a.damaged {
		found, err := filesIn(a.dir, number)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// segmentFiles returns the segments, and the names of the other files by generation.
func (a *Archive) segmentFiles() (all []StoredFile, others map[int][]string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	others = map[int][]string{}
	for number, b := range a.branches {
		others[number] = b.smallFiles()
		for key, s := range b.segments {
			f := StoredFile{Generation: number, Name: b.name(key) + compressedSuffix}
			if !s.compressed {
				f.Name, f.Length = b.name(key)+partialSuffix, int64(s.end-b.start(key))
			}
			if s.compressed || f.Length > 0 {
				all = append(all, f)
			}
		}
	}
	return all, others
}

// StoredIn returns the files of an archive that is not open, as they are on disk.
func StoredIn(archive string) (all []StoredFile, err error) {
	entries, err := os.ReadDir(archive)
	if err != nil {
		return nil, fmt.Errorf("list WAL archive: %w", err)
	}
	for _, e := range entries {
		number, err := strconv.Atoi(e.Name())
		if err != nil || !e.IsDir() {
			continue
		}
		found, err := filesIn(archive, number)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// filesIn returns the files of a generation as they are on disk.
func filesIn(archive string, number int) (all []StoredFile, err error) {
	entries, err := os.ReadDir(filepath.Join(archive, strconv.Itoa(number)))
	if err != nil {
		return nil, fmt.Errorf("list WAL archive: %w", err)
	}
	for _, e := range entries {
		f := StoredFile{Generation: number, Name: e.Name()}
		if !validName(f.Name) {
			continue
		}
		if f.isSmall() {
			f.Content, err = os.ReadFile(f.Path(archive))
		} else if info, infoErr := e.Info(); f.IsPartial() && infoErr == nil {
			f.Length = info.Size()
		} else {
			err = infoErr
		}
		if err != nil {
			return nil, fmt.Errorf("list WAL archive: %w", err)
		}
		all = append(all, f)
	}
	return all, nil
}

func (f StoredFile) isSmall() bool {
	_, history := xlog.ParseHistoryName(f.Name)
	return history || f.Name == generationFile
}

// anySegmentSize is the size with which the name of a segment of any size is valid: the smallest.
const anySegmentSize = 1 << 20

// validName reports whether a name is that of a file of a generation, other than a summary.
func validName(name string) bool {
	if (StoredFile{Name: name}).isSmall() {
		return true
	}
	base, suffix, _ := strings.Cut(name, ".")
	_, _, ok := xlog.ParseSegmentName(base, anySegmentSize)
	return ok && (suffix == compressedSuffix[1:] || suffix == partialSuffix[1:])
}
