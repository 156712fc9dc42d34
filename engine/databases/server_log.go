package databases

import (
	"regexp"
	"strings"
	"time"

	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// logTail is how much of a server's log is read, in bytes.
const logTail = 512 << 10

// LogFilter selects lines of a server's log. An empty field selects all.
type LogFilter struct {
	Level        string    // such as ERROR
	Search       string    // in any case
	Since, Until time.Time // from Since on, before Until
	Limit        int       // how many of the newest lines; 0 means all that are read
}

// LogLevels returns the levels of entries of a server's log.
func LogLevels() []string {
	return []string{"LOG", "WARNING", "ERROR", "FATAL", "PANIC", "STATEMENT", "DETAIL", "HINT", "CONTEXT"}
}

// LogLine is a line of a server's log.
type LogLine struct {
	At    time.Time // zero, as Level is empty, if the line continues the one before
	Level string
	Text  string // the whole line
}

// admits reports whether a line is selected; at and level are those of the line that
// it continues.
func (f LogFilter) admits(at time.Time, level, text string) bool {
	return (f.Level == "" || f.Level == level) && strings.Contains(strings.ToLower(text), strings.ToLower(f.Search)) &&
		(f.Since.IsZero() || !at.Before(f.Since)) && (f.Until.IsZero() || at.Before(f.Until))
}

// ServerLog returns the newest lines of the database's server log that match the
// filter, oldest first. They may contain data from the tenants' statements.
func (s *Service) ServerLog(call *model.Call, id string, filter LogFilter) ([]LogLine, error) {
	db, err := s.Database(call, id)
	if err != nil {
		return nil, err
	}
	text, err := postgres.ReadLog(s.DataDirectory(db.ID, db.Generation), logTail)
	if err != nil || text == "" {
		return nil, err
	}
	lines := selectLines(strings.Split(strings.TrimSuffix(text, "\n"), "\n"), filter)
	if filter.Limit > 0 {
		lines = lines[max(0, len(lines)-filter.Limit):]
	}
	return lines, nil
}

// logLine matches the beginning of an entry: the time, the process, and the level.
var logLine = regexp.MustCompile(`^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}) (?:UTC|GMT) \[\d+\] ([A-Z]+[1-5]?):  `)

func selectLines(texts []string, filter LogFilter) (lines []LogLine) {
	var at time.Time
	var level string
	for _, text := range texts {
		line := LogLine{Text: text}
		if parts := logLine.FindStringSubmatch(text); parts != nil {
			line.At, _ = time.Parse("2006-01-02 15:04:05.000", parts[1])
			line.Level = parts[2]
			at, level = line.At, line.Level
		}
		if filter.admits(at, level, text) {
			lines = append(lines, line)
		}
	}
	return lines
}
