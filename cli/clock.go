//go:build !movedclock

package cli

import "time"

// clock is what an appliance takes for the time.
func clock() time.Time { return time.Now() }
