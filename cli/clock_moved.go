//go:build movedclock

package cli

import (
	"os"
	"time"
)

// clock returns the appliance's time. In test binaries it is the machine's
// time, shifted by the duration in the file that HOLDFAST_CLOCK_OFFSET names.
func clock() time.Time {
	offset, err := os.ReadFile(os.Getenv("HOLDFAST_CLOCK_OFFSET"))
	if err != nil {
		return time.Now()
	}
	by, err := time.ParseDuration(string(offset))
	if err != nil {
		panic(err)
	}
	return time.Now().Add(by)
}
