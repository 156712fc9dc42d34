package remote

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestAllowlistOfTwo: two people who change a list at the same time do not take back each other's change.
func TestAllowlistOfTwo(t *testing.T) {
	for _, test := range []struct {
		args []string
		want []string
	}{
		{[]string{"add", "shop", "10.0.0.9"}, []string{"10.0.0.2", "10.0.0.9"}},
		{[]string{"remove", "shop", "10.0.0.2"}, []string{}},
		{[]string{"remove", "shop", "10.0.0.1"}, []string{"10.0.0.2"}},
	} {
		list, version := []string{"10.0.0.1", "10.0.0.2"}, 1
		id := idDatabase + strings.Repeat("1", 26)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			answer := map[string]any{"meta": map[string]any{"request_id": "req_1"}}
			tag := fmt.Sprintf(`"%d"`, version)
			switch {
			case !strings.HasSuffix(r.URL.Path, "/allowlist"):
				answer["data"] = []any{map[string]any{"id": id, "name": "shop"}}
			case r.Method == http.MethodGet:
				w.Header().Set("ETag", tag)
				answer["data"] = map[string]any{"entries": list}
				if version == 1 { // somebody else takes an address off the list
					list, version = []string{"10.0.0.2"}, 2
				}
			case r.Header.Get("If-Match") != tag:
				w.WriteHeader(http.StatusPreconditionFailed)
				answer["error"] = map[string]any{"code": "conflict", "message": "it was changed"}
			default:
				var in struct{ Entries []string }
				_ = json.NewDecoder(r.Body).Decode(&in)
				list = in.Entries
				answer["data"] = map[string]any{"entries": list}
			}
			_ = json.NewEncoder(w).Encode(answer)
		}))
		t.Setenv(variableURL, server.URL)
		t.Setenv(variableKey, "hf_key")
		root := &cobra.Command{Use: "holdfast", SilenceErrors: true, SilenceUsage: true}
		root.AddCommand(Commands("test")...)
		root.SetOut(t.Output())
		root.SetErr(t.Output())
		root.SetArgs(append([]string{"db", "allowlist"}, test.args...))
		err := root.ExecuteContext(t.Context())
		server.Close()
		if err != nil || !slices.Equal(list, test.want) {
			t.Errorf("%q: %v, the list is %q, want %q", test.args, err, list, test.want)
		}
	}
}
