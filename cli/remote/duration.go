package remote

import (
	"strconv"
	"strings"
	"time"
)

// maxDays fit in a time.Duration, for about 290 years.
const maxDays = 106_000

// ParseDuration is time.ParseDuration, but accepts whole days, such as 7d, too.
func ParseDuration(text string) (time.Duration, error) {
	days, isDays := strings.CutSuffix(text, "d")
	if !isDays {
		return time.ParseDuration(text)
	}
	n, err := strconv.ParseInt(days, 10, 32)
	if n > maxDays || n < -maxDays {
		err = strconv.ErrRange
	}
	return time.Duration(n) * 24 * time.Hour, err
}
