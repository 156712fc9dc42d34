package engine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"holdfast/engine/access"
	"holdfast/engine/core"
	"holdfast/engine/insight"
	"holdfast/engine/model"
)

// Recommendations are sorted by severity, and newest first within a severity, in one list and across pages, even if
// others appear and disappear between two pages.
func TestRecommendationsNewestFirst(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, newDataDir(t))
	by := ahead(&cfg)
	a := openEngine(t, cfg)
	list := func(page core.Page) core.List[model.Recommendation] {
		t.Helper()
		got, err := a.Insight.RecommendationList(a.call(model.ActionRecommendationList), insight.RecommendationFilter{}, page)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	for n := range 5 { // keys that never expire, for which there is advice
		if _, _, err := a.Access.KeyCreate(a.operatorCall(model.ActionKeyCreate), access.NewKey{Name: fmt.Sprint("key ", n), Scopes: model.Scopes()}); err != nil {
			t.Fatal(err)
		}
		list(core.Page{})
		by.Add(int64(time.Hour))
	}
	all := list(core.Page{}).Items
	if len(all) < 5 {
		t.Fatalf("only %d recommendations", len(all))
	}
	if !slices.IsSortedFunc(all, func(a, b model.Recommendation) int {
		if a.Severity != b.Severity {
			return a.Severity.Rank() - b.Severity.Rank()
		}
		return b.DetectedAt.Compare(a.DetectedAt)
	}) {
		for _, r := range all {
			t.Errorf("%s of %v: %s", r.Severity, r.DetectedAt, r.ID())
		}
	}
	var paged []string
	page := core.Page{Limit: 1}
	for n := 0; ; n++ {
		got := list(page)
		for _, r := range got.Items {
			paged = append(paged, r.ID())
		}
		if page.Cursor = got.Next; got.Next == "" {
			break
		}
		if n == 1 { // newer than what was shown: not on later pages
			if _, _, err := a.Access.KeyCreate(a.operatorCall(model.ActionKeyCreate), access.NewKey{Name: "late", Scopes: model.Scopes()}); err != nil {
				t.Fatal(err)
			}
		}
	}
	var want []string
	for _, r := range all {
		want = append(want, r.ID())
	}
	if !slices.Equal(paged, want) {
		t.Errorf("over pages: %q\nat once: %q", paged, want)
	}
}
