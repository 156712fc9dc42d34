package insight

import (
	"fmt"

	"holdfast/engine/core"
	"holdfast/engine/model"
)

// diskRelief is by how much more of the disk must be free again before a
// nearly full one is told of anew.
const diskRelief = 0.02

// WatchDisk tells when the disk is nearly full, once each time. told says
// whether that was told; the answer is what to pass next.
func (s *Service) WatchDisk(told bool) bool {
	host, err := core.MeasureHost(s.core.Config.DataDir)
	if err != nil {
		s.core.Log.Error("watch the disk", "error", err)
		return told
	}
	free := float64(host.DiskFree) / float64(max(host.DiskTotal, 1))
	switch {
	case !told && free < s.core.Config.Advice.DiskFree:
		s.core.Log.Warn("the disk is nearly full", "free_bytes", host.DiskFree, "total_bytes", host.DiskTotal)
		s.core.Tell(model.Event{
			Type:    model.EventDiskNearlyFull,
			Message: fmt.Sprintf("%.1f %% of the disk is free (%d of %d bytes).", free*100, host.DiskFree, host.DiskTotal),
		})
		return true
	case told && free >= s.core.Config.Advice.DiskFree+diskRelief:
		return false
	default:
		return told
	}
}
