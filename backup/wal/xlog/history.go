package xlog

import (
	"bufio"
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// History is the ancestors of a timeline, oldest first.
type History []Fork

// Fork is a timeline and the position at which the next one forked off.
type Fork struct {
	Timeline uint32
	At       LSN // the first position that no longer belongs to this timeline
}

// HistoryName returns PostgreSQL's name for a timeline's history file.
func HistoryName(timeline uint32) string { return fmt.Sprintf("%08X.history", timeline) }

// ParseHistoryName is the inverse of HistoryName.
func ParseHistoryName(name string) (timeline uint32, ok bool) {
	digits, ok := strings.CutSuffix(name, ".history")
	n, err := strconv.ParseUint(digits, 16, 32)
	return uint32(n), ok && err == nil && name == HistoryName(uint32(n))
}

// ParseHistory parses the history file of a timeline, like PostgreSQL's
// readTimeLineHistory.
func ParseHistory(timeline uint32, text []byte) (History, error) {
	var h History
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		fork, err := parseFork(line)
		if err != nil {
			return nil, fmt.Errorf("history of timeline %d: %w", timeline, err)
		}
		if len(h) > 0 && (fork.Timeline <= h[len(h)-1].Timeline || fork.At < h[len(h)-1].At) {
			return nil, fmt.Errorf("history of timeline %d: %q is out of order", timeline, line)
		}
		h = append(h, fork)
	}
	if len(h) > 0 && h[len(h)-1].Timeline >= timeline {
		return nil, fmt.Errorf("history of timeline %d: a timeline's ancestors have smaller numbers", timeline)
	}
	return h, nil
}

func parseFork(line string) (f Fork, err error) {
	fields := strings.Fields(line)
	if len(fields) < 2 {
		return f, fmt.Errorf("%q is not a timeline and an LSN", line)
	}
	number, err := strconv.ParseUint(fields[0], 10, 32)
	if err != nil || number == 0 {
		return f, fmt.Errorf("%q is not the number of a timeline", fields[0])
	}
	f.Timeline = uint32(number)
	f.At, err = ParseLSN(fields[1])
	return f, err
}

// at returns the timeline that wrote the page at lsn, where h is the history of timeline.
func (h History) at(lsn LSN, timeline uint32) uint32 {
	for _, fork := range h {
		if lsn < fork.At {
			return fork.Timeline
		}
	}
	return timeline
}

// Successor returns the end of a timeline in the history h of the timeline last, and the timeline that continues
// there. last has no end. ok is false if timeline is not an ancestor of last.
func (h History) Successor(timeline, last uint32) (end LSN, next uint32, ok bool) {
	if timeline == last {
		return ^LSN(0), last, true
	}
	for n, fork := range h {
		if fork.Timeline != timeline {
			continue
		}
		if n+1 < len(h) {
			last = h[n+1].Timeline
		}
		return fork.At, last, true
	}
	return 0, 0, false
}
