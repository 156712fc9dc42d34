package postgres

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// The server's log is a ring of files: postgres.log, and the older postgres.1.log
// to postgres.4.log, each about logSize bytes and at most twice that.
const (
	logSize = 10 << 20
	logKept = 4
)

// logSettings returns settings that leave rotation to rotateLog: the logging
// collector itself limits a file by time or by size, but never the total.
func logSettings() map[string]string {
	return map[string]string{
		"logging_collector":          "on",
		"log_directory":              logDir,
		"log_filename":               logFile,
		"log_file_mode":              "0600",
		"log_rotation_age":           "0",
		"log_rotation_size":          "0",
		"log_line_prefix":            "%m [%p] ", // clients choose their names, which may contain line feeds
		"log_min_duration_statement": "1s",
		"log_connections":            "off",
		"log_disconnections":         "off",
	}
}

// rotateLog rotates the log of the data directory dir when it exceeds limit
// bytes, and asks the postmaster for a new one (by a file and a signal, as
// `pg_ctl logrotate` does). If there is no log, it asks again. It truncates the
// older files to twice the limit: a tenant can write faster than the size is
// checked.
func rotateLog(dir string, limit int64, signal func() error) error {
	if err := cutLogs(dir, 2*limit); err != nil {
		return fmt.Errorf("rotate log: %w", err)
	}
	info, err := os.Stat(ringFile(dir, 0))
	if err == nil && info.Size() < limit {
		return nil
	}
	for i := logKept - 1; err == nil && i >= 0; i-- {
		if err := os.Rename(ringFile(dir, i), ringFile(dir, i+1)); err != nil && !os.IsNotExist(err) {
			return fmt.Errorf("rotate log: %w", err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "logrotate"), nil, 0o600); err != nil {
		return fmt.Errorf("rotate log: %w", err)
	}
	return signal()
}

// cutLogs truncates the older files of the ring that are longer than limit bytes.
func cutLogs(dir string, limit int64) error {
	for i := 1; i <= logKept; i++ {
		info, err := os.Stat(ringFile(dir, i))
		if err != nil || info.Size() <= limit {
			continue
		}
		if err := os.Truncate(ringFile(dir, i), limit); err != nil {
			return err
		}
	}
	return nil
}

func ringFile(dir string, i int) string {
	if i == 0 {
		return filepath.Join(dir, logDir, logFile)
	}
	return filepath.Join(dir, logDir, fmt.Sprintf("postgres.%d.log", i))
}

// logMark holds the length of the log when a start began.
type logMark struct {
	dir    string
	offset int64
}

func markLog(dir string) logMark {
	info, err := os.Stat(ringFile(dir, 0))
	if err != nil {
		return logMark{dir: dir}
	}
	return logMark{dir, info.Size()}
}

// tail returns the last lines that the server wrote since the mark, to its
// standard error and then to its log; "" if it wrote nothing.
func (m logMark) tail(lines int) string {
	text := tailOf(filepath.Join(m.dir, logDir, startFile), 0) + tailOf(ringFile(m.dir, 0), m.offset)
	var kept []string
	for line := range strings.Lines(text) {
		if !strings.Contains(line, "logging collector process") && !strings.Contains(line, "Future log output will appear") {
			kept = append(kept, strings.TrimRight(line, "\n"))
		}
	}
	if len(kept) > lines {
		kept = kept[len(kept)-lines:]
	}
	return strings.Join(kept, "\n")
}

// head returns the first part of what the server logged since the mark. A
// postmaster binds its addresses before it has children that also write.
func (m logMark) head() string {
	f, err := os.Open(ringFile(m.dir, 0))
	if err != nil {
		return ""
	}
	defer f.Close()
	text, _ := io.ReadAll(io.NewSectionReader(f, m.offset, 64<<10))
	return string(text)
}

// lastWords returns the last lines that the postmaster itself logged since the
// mark, except routine ones. Its children's lines may contain a tenant's data.
func (m logMark) lastWords(pid, lines int) string {
	var kept []string
	for line := range strings.Lines(tailOf(ringFile(m.dir, 0), m.offset)) {
		_, own := writtenBy(line, pid)
		if own && !strings.Contains(line, "ready to accept") && !strings.Contains(line, "received SIGHUP") {
			kept = append(kept, strings.TrimRight(line, "\n"))
		}
	}
	return strings.Join(kept[max(0, len(kept)-lines):], "\n")
}

// writtenBy returns a line of the log without its log_line_prefix, and whether
// the process pid wrote it. Only the start of the line is reliable: a tenant
// chooses the text after it, and the continuation lines (which PostgreSQL begins
// with a tab).
func writtenBy(line string, pid int) (text string, own bool) {
	fields := strings.SplitN(line, " ", 5) // date, time, zone, [pid]
	if len(fields) < 5 || line[0] == '\t' || fields[3] != fmt.Sprintf("[%d]", pid) {
		return "", false
	}
	return fields[4], true
}

// tailOf returns the last whole lines of a file from offset on, 16 KiB at most.
func tailOf(path string, offset int64) string {
	text, _ := lastLines(path, offset, 16<<10)
	return text
}

// lastLines returns the whole lines in the last limit bytes of a file, from
// offset on: a partial line may be text that a tenant has chosen. It returns
// nothing for a file that is absent.
func lastLines(path string, offset, limit int64) (string, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read log: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", fmt.Errorf("read log: %w", err)
	}
	if offset > info.Size() {
		offset = 0 // it was rotated since
	}
	from := max(offset, info.Size()-limit)
	text, err := io.ReadAll(io.NewSectionReader(f, from, info.Size()-from))
	if err != nil {
		return "", fmt.Errorf("read log: %w", err)
	}
	if from > offset {
		_, text, _ = bytes.Cut(text, []byte("\n")) // the first line is partial
	}
	return string(text), nil
}
