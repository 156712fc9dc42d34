package insight

import (
	"context"
	"time"
)

// SampleInterval is the time between queries of an instance's statistics.
const SampleInterval = 15 * time.Second

// Sample updates the statistics until ctx ends.
func (s *Service) Sample(ctx context.Context) {
	ticker := time.NewTicker(SampleInterval)
	defer ticker.Stop()
	diskTold := false
	for {
		select {
		case <-ticker.C:
			s.databases.SampleAll(ctx)
			s.databases.KeepMetrics(false)
			diskTold = s.WatchDisk(diskTold)
		case <-ctx.Done():
			s.databases.KeepMetrics(true)
			return
		}
	}
}
