package databases

import (
	"bytes"
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// logTail is how much of a server's log is read, in bytes.
const logTail = 512 << 10

// LogFilter selects lines of a server's log. An empty field selects all.
type LogFilter struct {
	Level        string    // one of LogLevels, in any case
	Search       string    // in any case
	Since, Until time.Time // from Since on, before Until
	Limit        int       // how many lines; 0 means all that are read
	After        string    // LogPart.Cursor: only what follows
}

// LogLevels returns the levels of entries of a server's log.
func LogLevels() []string {
	return []string{"LOG", "WARNING", "ERROR", "FATAL", "PANIC", "STATEMENT", "DETAIL", "HINT", "CONTEXT"}
}

// normalized checks the level and writes it as the log does.
func (f LogFilter) normalized() (LogFilter, error) {
	f.Level = strings.ToUpper(f.Level)
	if f.Level != "" && !slices.Contains(LogLevels(), f.Level) {
		return f, model.Invalid("level", "must be one of %s", strings.Join(LogLevels(), ", "))
	}
	return f, nil
}

// LogLine is a line of a server's log.
type LogLine struct {
	At    time.Time // zero, as Level is empty, if the line continues the one before
	Level string
	Text  string // the whole line
	end   int    // of the line, in what was read
}

// admits reports whether a line is selected; at and level are those of the line that
// it continues.
func (f LogFilter) admits(at time.Time, level, text string) bool {
	return (f.Level == "" || f.Level == level) && strings.Contains(strings.ToLower(text), strings.ToLower(f.Search)) &&
		(f.Since.IsZero() || !at.Before(f.Since)) && (f.Until.IsZero() || at.Before(f.Until))
}

// LogPart is a part of a server's log.
type LogPart struct {
	Lines []LogLine
	// Cursor is the position after the part, from which LogFilter.After continues.
	Cursor string
}

// ServerLog returns the newest lines of the database's server log that match the
// filter, oldest first, or with After the first ones after a position. They may
// contain data from the tenants' statements.
func (s *Service) ServerLog(call *model.Call, id string, filter LogFilter) (LogPart, error) {
	db, err := s.Database(call, id)
	if err == nil {
		filter, err = filter.normalized()
	}
	if err != nil {
		return LogPart{}, err
	}
	dir := s.DataDirectory(db.ID, db.Generation)
	if filter.After != "" {
		return logAfter(dir, filter)
	}
	text, end, err := postgres.LogTail(dir, logTail)
	lines := selectLines(text, filter)
	if filter.Limit > 0 {
		lines = lines[max(0, len(lines)-filter.Limit):]
	}
	return LogPart{Lines: lines, Cursor: end.String()}, err
}

func logAfter(dir string, filter LogFilter) (LogPart, error) {
	after, err := postgres.ParseLogPosition(filter.After)
	if err != nil {
		return LogPart{}, model.Invalid("after", "must be the cursor of an earlier answer")
	}
	text, at, err := postgres.LogAfter(dir, after, logTail)
	lines, end := selectLines(text, filter), len(text)
	if filter.Limit > 0 && len(lines) > filter.Limit {
		lines = lines[:filter.Limit]
		end = lines[filter.Limit-1].end
	}
	return LogPart{Lines: lines, Cursor: at.Plus(end).String()}, err
}

// logPoll is how often a wait reads the log.
const logPoll = 250 * time.Millisecond

// ServerLogWait is ServerLog, but waits until there is a line that matches, for the
// longest wait, or until the appliance stops. It fails if too many requests wait
// already.
func (s *Service) ServerLogWait(ctx context.Context, call *model.Call, id string, filter LogFilter, longest time.Duration) (LogPart, error) {
	release, err := s.core.Watchers.Watch(call)
	if err != nil {
		return LogPart{}, err
	}
	defer release()
	return s.ServerLogNext(ctx, call, id, filter, longest)
}

// ServerLogNext is ServerLogWait for a caller that is counted among the requests that wait.
func (s *Service) ServerLogNext(ctx context.Context, call *model.Call, id string, filter LogFilter, longest time.Duration) (LogPart, error) {
	timeout := time.NewTimer(longest)
	defer timeout.Stop()
	ticker := time.NewTicker(logPoll)
	defer ticker.Stop()
	for {
		part, err := s.ServerLog(call, id, filter)
		if err == nil {
			err = s.core.CheckAuthority(call)
		}
		if err != nil || len(part.Lines) > 0 {
			return part, err
		}
		filter.After = part.Cursor
		select {
		case <-ticker.C:
		case <-timeout.C:
			return part, nil
		case <-ctx.Done():
			return part, nil
		case <-s.core.Lifetime.Done():
			return part, nil
		}
	}
}

// logLine matches the beginning of an entry: the time, the process, and the level.
var logLine = regexp.MustCompile(`^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}) (?:UTC|GMT) \[\d+\] ([A-Z]+[1-5]?):  `)

func selectLines(text []byte, filter LogFilter) (lines []LogLine) {
	var at time.Time
	var level string
	end := 0
	for raw := range bytes.Lines(text) {
		end += len(raw)
		line := LogLine{Text: strings.ToValidUTF8(strings.TrimSuffix(string(raw), "\n"), "\uFFFD"), end: end}
		if parts := logLine.FindStringSubmatch(line.Text); parts != nil {
			line.At, _ = time.Parse("2006-01-02 15:04:05.000", parts[1])
			line.Level = parts[2]
			at, level = line.At, line.Level
		}
		if filter.admits(at, level, line.Text) {
			lines = append(lines, line)
		}
	}
	return lines
}
