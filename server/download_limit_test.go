package server

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"holdfast/engine/objects"
)

// TestDownloadsAreLimitedByAddress: whoever asks for downloads without end is told to wait; others are served.
func TestDownloadsAreLimitedByAddress(t *testing.T) {
	t.Parallel()
	s := startSite(t, "")
	bucket := s.bucket(t, "files", true)
	files := &downloads{engine: s.engine, log: slog.New(slog.DiscardHandler)}
	ask := func(from, method string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, objects.ObjectPath+bucket+"/missing", nil)
		r.RemoteAddr = from
		w := httptest.NewRecorder()
		files.ServeHTTP(w, r)
		return w
	}
	for n := range 7000 {
		if got := ask("192.0.2.1:99", http.MethodGet); got.Code != http.StatusNotFound {
			break
		} else if n > 6500 {
			t.Fatal("one address may ask without end")
		}
	}
	for _, method := range []string{http.MethodGet, http.MethodOptions} {
		if got := ask("192.0.2.1:98", method); got.Code != http.StatusTooManyRequests || got.Header().Get("Retry-After") == "" {
			t.Errorf("%s beyond the limit: %d %v", method, got.Code, got.Header())
		}
		if got := ask("192.0.2.2:98", method); got.Code == http.StatusTooManyRequests {
			t.Errorf("%s from another address: %d", method, got.Code)
		}
	}
}
