package postgres

import (
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// LogPosition is a position in a server's log. It stays valid when the log is rotated.
type LogPosition struct {
	file   uint64 // identifies the file by its first line, 0 for an empty one
	offset int64
}

// String returns the position in text form.
func (p LogPosition) String() string { return fmt.Sprintf("%x-%d", p.file, p.offset) }

// ParseLogPosition parses a position in text form.
func ParseLogPosition(text string) (p LogPosition, err error) {
	file, offset, _ := strings.Cut(text, "-")
	p.file, err = strconv.ParseUint(file, 16, 64)
	if err == nil {
		p.offset, err = strconv.ParseInt(offset, 10, 64)
	}
	if err == nil && (p.offset < 0 || p.String() != text) {
		err = strconv.ErrSyntax
	}
	return p, err
}

// Plus returns the position n bytes further in the same file.
func (p LogPosition) Plus(n int) LogPosition { return LogPosition{p.file, p.offset + int64(n)} }

// LogTail returns the last whole lines of the server's log in the data directory dir,
// limit bytes at most, and the position of their end.
func LogTail(dir string, limit int64) (text []byte, end LogPosition, err error) {
	newest, err := openLog(dir, 0)
	if err != nil {
		return nil, end, err
	}
	defer newest.close()
	text, end, err = newest.read(max(0, newest.size-limit), limit)
	if missing := limit - int64(len(text)); err == nil && missing > 0 && newest.size <= limit {
		older, openErr := openLog(dir, 1) // the log was rotated recently
		if openErr != nil {
			return text, end, openErr
		}
		defer older.close()
		var before []byte
		before, _, err = older.read(max(0, older.size-missing), missing)
		text = append(before, text...)
	}
	return text, end, err
}

// LogAfter returns the whole lines that follow a position, limit bytes at most, and the
// position of the first. If neither the log nor the one before it has the position,
// they are those of the log's beginning.
func LogAfter(dir string, after LogPosition, limit int64) (text []byte, at LogPosition, err error) {
	newest, err := openLog(dir, 0)
	if err != nil {
		return nil, after, err
	}
	defer newest.close()
	if newest.id != after.file || after.offset > newest.size {
		older, err := openLog(dir, 1)
		if err != nil {
			return nil, after, err
		}
		defer older.close()
		if older.id == after.file && older.id != 0 {
			text, at, err := older.after(after, limit)
			if err != nil || len(text) > 0 || at != after {
				return text, at, err
			}
		}
		after = LogPosition{newest.id, 0}
	}
	return newest.after(after, limit)
}

// openedLog is a file of the ring. All fields are zero if there is none.
type openedLog struct {
	file *os.File
	id   uint64
	size int64
}

func openLog(dir string, i int) (l openedLog, err error) {
	if l.file, err = os.Open(ringFile(dir, i)); errors.Is(err, fs.ErrNotExist) {
		return openedLog{}, nil
	}
	if err != nil {
		return l, fmt.Errorf("read log: %w", err)
	}
	info, err := l.file.Stat()
	var head []byte
	if err == nil {
		l.size = info.Size()
		head, err = io.ReadAll(io.NewSectionReader(l.file, 0, 256))
	}
	if err != nil {
		l.close()
		return openedLog{}, fmt.Errorf("read log: %w", err)
	}
	if first, _, whole := bytes.Cut(head, []byte("\n")); whole || len(head) == 256 {
		hash := fnv.New64a()
		_, _ = hash.Write(first)
		l.id = hash.Sum64()
	}
	return l, nil
}

func (l openedLog) close() {
	if l.file != nil {
		_ = l.file.Close()
	}
}

// after returns the whole lines that follow a position in the file, limit bytes at
// most, and the position of the first. A line that is longer is skipped limit by limit.
func (l openedLog) after(after LogPosition, limit int64) (text []byte, at LogPosition, err error) {
	text, _, err = l.read(after.offset, limit)
	if err == nil && len(text) == 0 && l.size-after.offset >= limit {
		after.offset += limit
	}
	return text, after, err
}

// read returns the whole lines from offset on, limit bytes at most, and the position
// of their end. An offset within a line skips that line: a partial line may be text
// that a tenant has chosen.
func (l openedLog) read(offset, limit int64) (text []byte, end LogPosition, err error) {
	if l.file == nil || offset >= l.size {
		return nil, LogPosition{l.id, min(offset, l.size)}, nil
	}
	from := max(0, offset-1)
	text, err = io.ReadAll(io.NewSectionReader(l.file, from, min(l.size, offset+limit)-from))
	if err != nil {
		return nil, end, fmt.Errorf("read log: %w", err)
	}
	if offset > 0 {
		skip := bytes.IndexByte(text, '\n') + 1
		if skip == 0 { // within one long line
			return nil, LogPosition{l.id, from + int64(len(text))}, nil
		}
		text, from = text[skip:], from+int64(skip)
	}
	text = text[:bytes.LastIndexByte(text, '\n')+1]
	return text, LogPosition{l.id, from + int64(len(text))}, nil
}
