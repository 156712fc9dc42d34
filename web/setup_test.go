package web

import (
	"net/http"
	"net/url"
	"testing"
)

// TestSetupByStrangers: set-up links cannot be tried without end.
func TestSetupByStrangers(t *testing.T) {
	t.Parallel()
	c := openConsole(t, 0)
	form := url.Values{"token": {"guess"}, "email": {"eve@example.com"}, "password": {"correct horse battery"}}
	for n, status := range []int{0: http.StatusNotFound, 40: http.StatusTooManyRequests} {
		if got := c.post(t, "/setup", form); status != 0 && got.status != status {
			t.Errorf("attempt %d: %d, want %d", n, got.status, status)
		}
	}
}
