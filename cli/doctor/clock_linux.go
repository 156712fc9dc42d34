package doctor

import (
	"context"
	"time"

	"golang.org/x/sys/unix"
)

// checkClock asks the kernel whether its clock is synchronized. Keys, links and
// certificates expire.
func checkClock(context.Context, Options) []Finding {
	const check = "clock"
	now := time.Now().UTC().Format(time.RFC3339)
	var state unix.Timex
	status, err := unix.Adjtimex(&state)
	if err == nil && (status == unix.TIME_ERROR || state.Status&unix.STA_UNSYNC != 0) {
		return one(Finding{check, Warning, now + ", and nothing keeps it right", "run systemd-timesyncd or chrony; without a network set it by hand"})
	}
	return one(Finding{Check: check, Level: OK, Detail: now})
}
