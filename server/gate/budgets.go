package gate

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// announceBudgets sets RateLimit-Policy and RateLimit (draft-ietf-httpapi-ratelimit-headers-11) for the budgets that
// the request draws on, if there are any. A name is a quoted string in which nothing needs an escape.
func (x *Exchange) announceBudgets() {
	var policies, states []string
	for _, b := range x.Call.Budgets {
		policies = append(policies, fmt.Sprintf("%q;q=%d;w=%d", string(b.Class), b.Limit, seconds(b.Window)))
		states = append(states, fmt.Sprintf("%q;r=%d;t=%d", string(b.Class), b.Left, seconds(b.More)))
	}
	if len(policies) > 0 {
		x.Header().Set("RateLimit-Policy", strings.Join(policies, ", "))
		x.Header().Set("RateLimit", strings.Join(states, ", "))
	}
}

// seconds rounds up: a client that waits as long gets what it was told.
func seconds(d time.Duration) int { return int(math.Ceil(d.Seconds())) }
