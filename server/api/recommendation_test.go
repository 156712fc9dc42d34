package api

import (
	"strings"
	"testing"

	"holdfast/engine"
)

func TestPageOf(t *testing.T) {
	var all []Recommendation
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		all = append(all, Recommendation{ID: id})
	}
	for _, test := range []struct {
		limit        int
		cursor, want string
		next         string
	}{
		{2, "", "a b", "b"}, {2, "b", "c d", "d"}, {2, "d", "e", ""}, {5, "", "a b c d e", ""}, {100, "e", "", ""}, {2, "gone", "a b", "b"},
	} {
		page := pageOf(all, engine.Page{Limit: test.limit, Cursor: test.cursor})
		ids := make([]string, len(page.Items))
		for i, r := range page.Items {
			ids[i] = r.ID
		}
		if got := strings.Join(ids, " "); got != test.want || page.Next != test.next {
			t.Errorf("%d after %q: %q, next %q", test.limit, test.cursor, got, page.Next)
		}
	}
}
