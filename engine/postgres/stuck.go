package postgres

import (
	"errors"
	"os"
	"path/filepath"
	"time"
)

const (
	// stillEvery is how often it is looked whether the recovery of a server stands still, and stillLooks how often it must
	// be seen to before the server is ended.
	stillEvery = 10 * time.Second
	stillLooks = 4
	// stillRuns is what processes that do nothing may run in that time: the one that replays WAL has a timer for its log.
	stillRuns = 5 * time.Millisecond
)

// errStandsStill says that the recovery of a server never ends.
var errStandsStill = errors.New("its recovery stands still")

// stillness notices a server whose recovery from the death of one of its processes never ends. In PostgreSQL 18 the
// process that replays WAL waits forever for the checkpoint at its end if the checkpointer dies, of a full disk for example,
// and the postmaster notices that before it notices that the replay began.
type stillness struct {
	seen  idleRecovery
	looks int
}

// look reports whether a server is in a recovery in which nothing was done at the last looks. It is called every
// stillEvery.
func (s *stillness) look(p *process) bool {
	before := s.seen
	s.seen = lookForIdleRecovery(p)
	switch {
	case s.seen.startup == 0:
		s.looks = 0
	case s.seen.startup != before.startup || s.seen.checkpointer != before.checkpointer || s.seen.ran-before.ran > stillRuns:
		s.looks = 1
	default:
		s.looks++
	}
	return s.looks >= stillLooks
}

// idleRecovery is what a recovery from a crash consists of.
type idleRecovery struct {
	startup      int           // the process that replays WAL, 0 if there is none or something is done
	checkpointer int           // 0 for none
	ran          time.Duration // what both have run
}

// States of processes, as proc(5) has them.
const (
	sleeps       = 'S'
	waitsForDisk = 'D'
)

// lookForIdleRecovery returns the recovery of a server if neither of its processes does anything now and no process of the
// server waits for a disk. In a recovery of another kind than from a crash, waiting is no sign of an error.
func lookForIdleRecovery(p *process) (seen idleRecovery) {
	for _, name := range []string{"standby.signal", "recovery.signal"} {
		if _, err := os.Lstat(filepath.Join(p.dir, name)); err == nil {
			return idleRecovery{}
		}
	}
	for _, pid := range childrenOf(p.pid) {
		replays, checkpoints := isRecovering(pid), isCheckpointer(pid)
		state, ran := runState(pid)
		if state == waitsForDisk || (replays || checkpoints) && state != sleeps { // others have timers
			return idleRecovery{}
		}
		switch {
		case replays:
			seen.startup, seen.ran = pid, seen.ran+ran
		case checkpoints:
			seen.checkpointer, seen.ran = pid, seen.ran+ran
		}
	}
	return seen
}
