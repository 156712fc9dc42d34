package remote

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// fakeAppliance responds with fixed data to requests such as "GET /v1/imports", and records the bodies that it receives.
type fakeAppliance struct {
	data   map[string]any
	bodies map[string]string
}

// streamed is data that is answered as a stream of events without end.
type streamed string

// ServeHTTP implements http.Handler.
func (f *fakeAppliance) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	route := r.Method + " " + r.URL.Path
	body, _ := io.ReadAll(r.Body)
	f.bodies[route] = string(body)
	data, found := f.data[route]
	if text, ok := data.(streamed); ok {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, string(text))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done() // a stream has no end
		return
	}
	response := map[string]any{"data": data, "meta": map[string]any{"request_id": "req_1"}}
	w.Header().Set("Content-Type", "application/json")
	if !found {
		w.WriteHeader(http.StatusNotFound)
		response = map[string]any{"error": map[string]any{"code": "not_found", "message": route}, "meta": response["meta"]}
	}
	_ = json.NewEncoder(w).Encode(response)
}

// runWith runs a command against a fake appliance with the data. It returns what the command prints, the bodies of its
// requests, and its error.
func runWith(t *testing.T, data map[string]any, args ...string) (out string, bodies map[string]string, err error) {
	t.Helper()
	var printed strings.Builder
	bodies, err = runWithin(t, t.Context(), &printed, data, args...)
	return printed.String(), bodies, err
}

// runWithin is runWith until ctx ends, as it does when a person interrupts a command. It prints to out.
func runWithin(t *testing.T, ctx context.Context, out io.Writer, data map[string]any, args ...string) (bodies map[string]string, err error) {
	t.Helper()
	fake := &fakeAppliance{data: data, bodies: map[string]string{}}
	server := httptest.NewServer(fake)
	defer server.Close()
	t.Setenv(variableURL, server.URL)
	t.Setenv(variableKey, "hf_key")
	root := &cobra.Command{Use: "holdfast", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(Commands("test")...)
	root.SetOut(out)
	root.SetErr(out)
	root.SetArgs(args)
	err = root.ExecuteContext(ctx)
	return fake.bodies, err
}
