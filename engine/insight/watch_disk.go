package insight

import (
	"fmt"

	"holdfast/engine/core"
	"holdfast/engine/model"
)

// diskRelief is the additional free share of the disk after which a nearly full
// disk is reported again.
const diskRelief = 0.02

// WatchDisk reports a nearly full disk once each time it fills up. The told
// argument says whether it is already reported; pass the result to the next call.
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
		s.core.Emit(model.Event{
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
