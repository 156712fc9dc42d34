//go:build movedclock

package cli

import (
	"os"
	"time"
)

// clock, in a binary that is built for tests, is the machine's, set forward or
// back by the duration in the file that HOLDFAST_CLOCK_OFFSET names.
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
