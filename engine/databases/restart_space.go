package databases

import (
	"sync/atomic"

	"holdfast/engine/core"
)

// restartSpace is the free disk space without which no server is stopped by itself: its last WAL is archived, and it must be able
// to start again.
const restartSpace = 4 * core.MinFreeSpace

// restartsHeld is whether the log says that servers are not stopped because the disk is nearly full.
type restartsHeld struct{ said atomic.Bool }

// maySuspend reports whether a server may be stopped that is to start again, to let its database sleep or for a newer minor
// version. On a disk that is nearly full it may not: it might not start. The log says so once until there is space.
func (s *Service) maySuspend() bool {
	free, err := s.core.Space.Free()
	if err != nil || free >= restartSpace {
		s.held.said.Store(false)
		return true
	}
	if !s.held.said.Swap(true) {
		s.core.Log.Warn("the disk is nearly full: until it has space, databases do not fall asleep and are not restarted for a newer minor version, because their servers might not start again",
			"free_mb", free>>20, "needed_mb", restartSpace>>20)
	}
	return false
}
