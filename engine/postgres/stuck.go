package postgres

import (
	"os"
	"path/filepath"
	"time"
)

const (
	// stuckAfter is how long the recovery of a server may stand still.
	stuckAfter = 30 * time.Second
	// stillEvery is how often that is looked at.
	stillEvery = 10 * time.Second
	// stillRuns is what processes that do nothing may run in that time: the one that replays WAL has a timer for its log.
	stillRuns = 5 * time.Millisecond
)

// stillness notices a server whose recovery from the death of one of its processes never ends. In PostgreSQL 18 the
// process that replays WAL waits forever for the checkpoint at its end if the checkpointer dies, of a full disk for example,
// and the postmaster notices that before it notices that the replay began.
type stillness struct {
	seen  idleRecovery
	since time.Time
}

// look returns for how long a server has been in recovery without doing anything. It is called every stillEvery.
func (s *stillness) look(p *process) time.Duration {
	before := s.seen
	s.seen = lookForIdleRecovery(p)
	if s.seen.startup == 0 || s.seen.startup != before.startup || s.seen.ran-before.ran > stillRuns {
		s.since = time.Now()
	}
	return time.Since(s.since)
}

// idleRecovery is what a recovery from a crash consists of.
type idleRecovery struct {
	startup int           // the process that replays WAL, 0 if there is none or something is done
	ran     time.Duration // what it and the checkpointer have run
}

// lookForIdleRecovery returns the recovery of a server if none of its processes does anything now. In a recovery of
// another kind than from a crash, waiting is no sign of an error.
func lookForIdleRecovery(p *process) (seen idleRecovery) {
	for _, name := range []string{"standby.signal", "recovery.signal"} {
		if _, err := os.Lstat(filepath.Join(p.dir, name)); err == nil {
			return idleRecovery{}
		}
	}
	for _, pid := range childrenOf(p.pid) {
		replays := isRecovering(pid)
		if !replays && !isCheckpointer(pid) {
			continue
		}
		ran, still := asleep(pid)
		if !still {
			return idleRecovery{}
		}
		seen.ran += ran
		if replays {
			seen.startup = pid
		}
	}
	return seen
}
