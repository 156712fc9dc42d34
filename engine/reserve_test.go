package engine

import (
	"errors"
	"os"
	"testing"

	"holdfast/engine/core"
)

// TestReserveIsKept: space is reserved, and stays so while the disk is not full.
func TestReserveIsKept(t *testing.T) {
	t.Parallel()
	e := openEngine(t, testConfig(t, newDataDir(t)))
	if _, free, err := core.MeasureDisk(e.cfg.DataDir); err != nil || free < 100<<20 {
		t.Skipf("the disk has %d bytes free: %v", free, err)
	}
	if err := errors.Join(e.fillReserve(), e.fillReserve(), e.releaseReserve()); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(e.reservePath()); err != nil || info.Size() != reserveSize {
		t.Errorf("the reserve is %v, %v", info, err)
	}
}
