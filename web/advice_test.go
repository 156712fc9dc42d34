package web

import (
	"html"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/engine/model"
)

// TestAdviceLeadsSomewhere checks that every recommended request has an
// existing page where a user can do the same.
func TestAdviceLeadsSomewhere(t *testing.T) {
	t.Parallel()
	database := model.Resource{Type: model.ResourceDatabase, ID: "db_1", Name: "shop"}
	call := func(path string) *model.RecommendedCall { return &model.RecommendedCall{Method: "POST", Path: path} }
	mux := http.NewServeMux()
	for _, r := range routes() {
		mux.Handle(r.pattern, http.NotFoundHandler())
	}
	for _, tt := range []struct {
		about         model.Resource
		action        *model.RecommendedCall
		place, remedy string
	}{
		{database, call("/v1/databases/db_1/backups"), "/databases/db_1", "/databases/db_1/backups"},
		{database, call("/v1/databases/db_1/recovery"), "/databases/db_1", "/databases/db_1/backups"},
		{database, call("/v1/databases/db_1/allowlist"), "/databases/db_1", "/databases/db_1/access"},
		{database, call("/v1/databases/db_1/restart"), "/databases/db_1", "/databases/db_1/settings"},
		{database, call("/v1/databases/db_1/extensions"), "/databases/db_1", "/databases/db_1/extensions"},
		{database, call("/v1/databases/db_1/extensions/hstore"), "/databases/db_1", "/databases/db_1/extensions"},
		{database, call("/v1/databases/db_1/replication/slots/debezium"), "/databases/db_1", "/databases/db_1/replication"},
		{database, nil, "/databases/db_1", ""},
		{model.Resource{Type: model.ResourceBackup, ID: "bkp_1", Name: "shop"}, call("/v1/databases/db_1/backups"), "/databases/db_1/backups/bkp_1", "/databases/db_1/backups"},
		{model.Resource{Type: model.ResourceKey, ID: "key_1", Name: "k"}, call("/v1/account/api-keys"), "/keys/key_1", "/keys"},
		{model.Resource{Type: model.ResourceObject, ID: "bucket_1", Name: "a/b"}, nil, "/buckets/bucket_1", ""},
		{model.Resource{}, call("/v1/account/usage"), "", "/settings"},
	} {
		r := model.Recommendation{Resource: tt.about, Action: tt.action}
		if got := pageLinkOf(r).Href; got != tt.place {
			t.Errorf("%v is at %q, want %q", tt.about, got, tt.place)
		}
		if got := remedyFor(r).Href; got != tt.remedy {
			t.Errorf("%v is seen to at %q, want %q", tt.about, got, tt.remedy)
		}
		for _, path := range []string{tt.place, tt.remedy} {
			if path == "" {
				continue
			}
			request, err := http.NewRequest(http.MethodGet, path, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, pattern := mux.Handler(request); pattern == "" {
				t.Errorf("there is no page %s", path)
			}
		}
	}
}

// TestFactsOf formats evidence as the checks produce it.
func TestFactsOf(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	got := factsOf(map[string]any{
		"size_bytes": int64(3 << 20), "age_seconds": int64(7200), "mean_ms": 12.5, "scans": 0, "rows_read": int64(1234567),
		"table": "public.orders", "columns": []string{"a", "b"}, "started_at": at, "failed_at": &at, "slot_lost": false, "hit_share": 0.875,
	})
	want := []fact{
		{"age", "2 hours"},
		{"columns", "a, b"},
		{"failed at", "2026-03-01 12:00:00 UTC"},
		{"hit share", "0.875"},
		{"mean", "12 ms"},
		{"rows read", "1,234,567"},
		{"scans", "0"},
		{"size", "3.00 MiB"},
		{"slot lost", "false"},
		{"started at", "2026-03-01 12:00:00 UTC"},
		{"table", "public.orders"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestProse checks that only backquotes in a message become HTML.
func TestProse(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]string{
		"run `a <b>` now":      "run <code>a &lt;b&gt;</code> now",
		"<script>x</script>":   "&lt;script&gt;x&lt;/script&gt;",
		"one ` alone":          "one <code> alone</code>",
		`a "quoted" & 'plain'`: "a &#34;quoted&#34; &amp; &#39;plain&#39;",
	} {
		if got := string(prose(message)); got != want {
			t.Errorf("%q: %q, want %q", message, got, want)
		}
	}
}

func TestThousands(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1000: "-1,000", -999: "-999", 1234567: "1,234,567"} {
		if got := thousands(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

// TestAdvicePages checks that every recommendation is on exactly one page.
func TestAdvicePages(t *testing.T) {
	t.Parallel()
	c := openConsole(t, 10)
	overview := c.get(t, "/")
	if !strings.Contains(overview, `href="/advice"`) {
		t.Error("the overview does not lead to the rest of what needs attention")
	}
	item, more := regexp.MustCompile(`<li class="(critical|warning|info)">`), regexp.MustCompile(`href="([^"]*)">Show more<`)
	first := c.get(t, "/advice")
	seen := 0
	for page := first; ; {
		seen += len(item.FindAllString(page, -1))
		next := more.FindStringSubmatch(page)
		if next == nil {
			break
		}
		page = c.get(t, "/advice"+html.UnescapeString(next[1]))
	}
	if seen < seedDatabases-1 || !strings.Contains(first, model.Count(seen, "finding")+",") {
		t.Errorf("%d findings on all pages", seen)
	}
	about := c.get(t, "/advice?database=db_07")
	if !strings.Contains(about, "shop7 has no completed backup") || strings.Contains(about, "shop8") {
		t.Error("the page of one database's findings has not just those")
	}
}

// TestTurn checks that every item is on exactly one page, whatever the query.
func TestTurn(t *testing.T) {
	t.Parallel()
	all := []int{1, 2, 3, 4, 5}
	for asked, want := range map[string]listPage[int]{
		"":                          {[]int{1, 2}, 5, 1, "", "?page=2"},
		"page=2&done=rls":           {[]int{3, 4}, 5, 2, "?page=1", "?page=3"},
		"page=3&database=db_1":      {[]int{5}, 5, 3, "?database=db_1&page=2", ""},
		"page=99":                   {[]int{5}, 5, 3, "?page=2", ""},
		"page=-1":                   {[]int{1, 2}, 5, 1, "", "?page=2"},
		"page=99999999999999999999": {[]int{5}, 5, 3, "?page=2", ""},
		"page=x":                    {[]int{1, 2}, 5, 1, "", "?page=2"},
	} {
		query, err := url.ParseQuery(asked)
		if err != nil {
			t.Fatal(err)
		}
		if got := listPageOf(all, query, 2); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, want %+v", asked, got, want)
		}
	}
	if got := listPageOf([]int(nil), nil, 2); len(got.Items) != 0 || got.Next != "" || got.Previous != "" {
		t.Errorf("nothing: %+v", got)
	}
}

// TestDownloadsHaveTheirOrigin checks that the console links to the objects'
// own host, if they have one.
func TestDownloadsHaveTheirOrigin(t *testing.T) {
	t.Parallel()
	c := openConsole(t, 10)
	c.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	answer, err := c.client.Get(c.server.URL + "/buckets/bucket_1/download?key=folder1%2Ffile1.txt")
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if to := answer.Header.Get("Location"); !strings.HasPrefix(to, seedObjects+"/objects/bucket_1/folder1/file1.txt?") {
		t.Errorf("%s: the download is at %q", answer.Status, to)
	}
}
