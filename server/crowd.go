package server

import (
	"fmt"
	"net/http"
	"net/netip"
	"sync"

	"holdfast/engine/model"
	"holdfast/server/api"
)

// maxRunning is how many requests of one client address, with an IPv6 /64 as one, are answered at once. Each may hold a file
// and 256 KiB of memory for as long as its client takes to read. Browsers make 6 to 100 at once, tools for S3 up to some
// hundreds.
const maxRunning = 1024

// crowd bounds the requests of each address that are answered at once, on all listeners together.
type crowd struct {
	mu      sync.Mutex
	running map[string]int // by model.VisitorOf
}

func newCrowd() *crowd { return &crowd{running: map[string]int{}} }

// admit passes requests on to next, but for those of an address that has too many already. The machine's own address is
// exempt: a proxy connects from there.
func (c *crowd) admit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ip := model.ClientIP(r.RemoteAddr)
		if address, err := netip.ParseAddr(ip); err != nil || address.Unmap().IsLoopback() {
			next.ServeHTTP(w, r)
			return
		}
		visitor := model.VisitorOf(ip)
		if !c.enter(visitor) {
			refuseCrowd(w)
			return
		}
		defer c.leave(visitor)
		next.ServeHTTP(w, r)
	})
}

func (c *crowd) enter(visitor string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running[visitor] >= maxRunning {
		return false
	}
	c.running[visitor]++
	return true
}

func (c *crowd) leave(visitor string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running[visitor]--; c.running[visitor] == 0 {
		delete(c.running, visitor)
	}
}

// refuseCrowd answers in JSON, also to clients of S3, which go by the status.
func refuseCrowd(w http.ResponseWriter) {
	body := api.Refusal(model.CodeRateLimited, fmt.Sprintf("this address has %d requests under way; try again when some have ended", maxRunning))
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Retry-After", "1")
	w.Header().Set("X-Request-Id", body.RequestID)
	w.WriteHeader(http.StatusTooManyRequests)
	_, _ = w.Write(body.Text)
}
