package web

import (
	"bytes"
	"html"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/engine/access"
	"holdfast/engine/databases"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/objects"
)

// reply is a response that was read completely.
type reply struct {
	status   int
	header   http.Header
	location string
	page     string
}

// send sends a request unchanged and follows no redirect.
func (c *console) send(t *testing.T, method, path, contentType string, body io.Reader) reply {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, c.server.URL+path, body)
	if err != nil {
		t.Fatal(err)
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	request.Header.Set("Referer", c.server.URL+"/databases/db_00/settings?done=rls")
	client := *c.client
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	page, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{answer.StatusCode, answer.Header, answer.Header.Get("Location"), string(page)}
}

// post sends a form as a browser would.
func (c *console) post(t *testing.T, path string, form url.Values) reply {
	t.Helper()
	return c.send(t, http.MethodPost, path, "application/x-www-form-urlencoded", strings.NewReader(form.Encode()))
}

// as signs in as another user.
func (c *console) as(t *testing.T, email string, role model.Role) *console {
	t.Helper()
	org, err := c.engine.Access.OrganizationList()
	if err != nil {
		t.Fatal(err)
	}
	call := &model.Call{Actor: model.Actor{Type: model.ActorOperator}, Organization: org[0].ID}
	if _, err := c.engine.Access.UserCreate(call, access.NewUser{Email: email, Role: role, Password: model.NewSecret("correct horse battery")}); err != nil {
		t.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	other := *c
	other.client = &http.Client{Jar: jar}
	if got := other.post(t, "/sign-in", url.Values{"email": {email}, "password": {"correct horse battery"}}); got.status != http.StatusSeeOther {
		t.Fatalf("sign in as %s: %d", email, got.status)
	}
	return &other
}

// nobody returns a client without a session.
func (c *console) nobody() *console {
	other := *c
	other.client = &http.Client{}
	return &other
}

var links = regexp.MustCompile(`href="([^"]*)"`)

// TestLinksLeadSomewhere follows every link of every page, of every response to
// a form, and of the second page of every list.
func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	c := openConsole(t, 500)
	found := map[string]string{}
	read := func(from, page string) {
		for _, link := range links.FindAllStringSubmatch(page, -1) {
			to, err := url.Parse(html.UnescapeString(link[1]))
			if err != nil {
				t.Fatalf("%s: %v", from, err)
			}
			base, _, _ := strings.Cut(from, "?")
			to = (&url.URL{Path: base}).ResolveReference(to)
			if to.Host == "" && !strings.HasPrefix(link[1], "#") && !strings.HasPrefix(to.Path, "/v1/") {
				found[to.RequestURI()] = from
			}
		}
	}
	for _, path := range pagePaths() {
		read(path, c.get(t, path))
	}
	for path, form := range map[string]url.Values{
		"/people": {}, "/people/user_z001/role": {}, "/projects": {}, "/buckets": {}, "/keys": {}, "/webhooks": {}, "/databases": {},
		"/buckets/bucket_1/upload-links":   {"prefix": {"folder1/"}},
		"/buckets/bucket_1/objects/delete": {"key": {"folder1/file1.txt"}}, "/buckets/bucket_1/delete": {},
		"/databases/db_00/delete": {}, "/databases/db_00/backups/bkp_00/restore": {},
	} {
		got := c.post(t, path, form)
		if got.status < 400 || !strings.Contains(got.page, `role="alert"`) {
			t.Errorf("POST %s is not refused: %d", path, got.status)
		}
		read(path, got.page)
	}
	cursors := 0
	for link, from := range found {
		got := c.send(t, http.MethodGet, link, "", nil)
		if got.status == http.StatusNotFound || got.status == http.StatusUnprocessableEntity {
			t.Errorf("%s leads to %s: %d", from, link, got.status)
		}
		if strings.Contains(link, "cursor=") {
			cursors++
		}
	}
	if cursors < 4 { // users, projects, a bucket, the audit log
		t.Errorf("only %d links lead to further pages", cursors)
	}
}

// TestFiltersStayOnFurtherPages pages through the filtered audit log.
func TestFiltersStayOnFurtherPages(t *testing.T) {
	t.Parallel()
	c := openConsole(t, 500)
	path, entries := "/audit?action=key&actor=a+key&outcome=success", 0
	for path != "" {
		page := c.get(t, path)
		entries += strings.Count(page, `<th scope="row">`)
		if all := strings.Count(page, `<th scope="row">key.list</th>`); all != strings.Count(page, `<th scope="row">`) {
			t.Fatalf("%s has other entries", path)
		}
		path = ""
		if more := regexp.MustCompile(`href="([^"]*cursor=[^"]*)"`).FindStringSubmatch(page); more != nil {
			path = html.UnescapeString(more[1])
		}
	}
	if entries != 125 {
		t.Errorf("%d entries", entries)
	}
}

// TestUnknownIDs requests every page with an unknown id: no page offers an
// action on it.
func TestUnknownIDs(t *testing.T) {
	t.Parallel()
	c := openConsole(t, 0)
	for _, r := range routes() {
		method, path, _ := strings.Cut(r.pattern, " ")
		if !strings.Contains(path, "{id}") || method == http.MethodPut {
			continue
		}
		path = strings.NewReplacer("{id}", "nothing", "{backup}", "nothing").Replace(path)
		got := c.send(t, method, path+"?key=a&at=2026-01-31T12:00:00", "application/x-www-form-urlencoded", nil)
		if got.status < 400 || got.status >= 500 {
			t.Errorf("%s: %d", r.pattern, got.status)
		}
		if strings.Contains(got.page, "/nothing") {
			t.Errorf("%s shows something that is not there", r.pattern)
		}
	}
	if c.log.Len() > 0 {
		t.Errorf("logged: %s", c.log)
	}
}

// TestFormsAreReadOrRefused checks that an unreadable form is not taken for an
// empty one.
func TestFormsAreReadOrRefused(t *testing.T) {
	t.Parallel()
	c := openConsole(t, 0)
	var body bytes.Buffer
	parts := multipart.NewWriter(&body)
	if err := parts.WriteField("public", "on"); err != nil {
		t.Fatal(err)
	}
	parts.Close()
	for contentType, body := range map[string]string{
		parts.FormDataContentType(): body.String(), "text/plain": "public=on", "": "public=on", "application/json": "{}",
	} {
		if got := c.send(t, http.MethodPost, "/buckets/bucket_1/settings", contentType, strings.NewReader(body)); got.status != http.StatusUnprocessableEntity {
			t.Errorf("as %q: %d, %s", contentType, got.status, got.location)
		}
	}
}

// TestUploadFormIsBounded: the header of a part before the file is not read into the memory without a bound.
func TestUploadFormIsBounded(t *testing.T) {
	t.Parallel()
	c := openConsole(t, 0)
	for fill, want := range map[string]int{"": http.StatusSeeOther, strings.Repeat("; a=b", 10_000): http.StatusUnprocessableEntity} {
		body := "--x\r\nContent-Disposition: form-data; name=\"prefix\"" + fill + "\r\n\r\nfolder1/\r\n" +
			"--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\ntext\r\n--x--\r\n"
		got := c.send(t, http.MethodPost, "/buckets/bucket_1", "multipart/form-data; boundary=x", strings.NewReader(body))
		if got.status != want {
			t.Errorf("with %d bytes more: %d, want %d: %s", len(fill), got.status, want, got.page)
		}
	}
}

// TestSignedOut checks that a form posted without a session is reported as not
// carried out, and that sign-in leads back to its page.
func TestSignedOut(t *testing.T) {
	t.Parallel()
	c := openConsole(t, 0)
	got := c.nobody().post(t, "/databases/db_00/restart", nil)
	if want := "/sign-in?next=%2Fdatabases%2Fdb_00%2Fsettings%3Fdone%3Drls&undone=1"; got.location != want {
		t.Errorf("a form leads to %q, want %q", got.location, want)
	}
	if page := c.nobody().send(t, http.MethodGet, got.location, "", nil).page; !strings.Contains(page, "was not done") {
		t.Error("the sign-in page does not say that nothing was done")
	}
	viewer := c.as(t, "viewer@example.com", model.RoleViewer)
	for who, want := range map[*console]int{c.nobody(): http.StatusUnauthorized, viewer: http.StatusForbidden} {
		got := who.send(t, http.MethodPut, "/buckets/bucket_1?key=a", "text/plain", strings.NewReader("a"))
		if got.status != want || !strings.HasPrefix(got.header.Get("Content-Type"), "text/plain") || strings.Contains(got.page, "<") {
			t.Errorf("an upload: %d, %s, want %d in words", got.status, got.page, want)
		}
	}
	if page := viewer.send(t, http.MethodGet, "/databases/db_00/settings", "", nil).page; strings.Contains(page, "/restart") || strings.Contains(page, "/password") {
		t.Error("a viewer is offered what is refused")
	}
}

// TestUsedUpBudgets checks that every rate-limited form is shown again with
// what was typed and how long to wait.
func TestUsedUpBudgets(t *testing.T) {
	t.Parallel()
	c := openConsole(t, 0)
	typed := url.Values{
		"name": {"1 typed"}, "db_user": {"Typed"}, "username": {"typed"}, "source_url": {"x"}, "public": {"on"}, "at": {"2026-01-31T12:00:00"},
	}
	shows := map[model.Action][]string{
		model.ActionDatabaseCreate: {`value="1 typed"`, `value="Typed"`, `action="/databases"`},
		model.ActionBucketCreate:   {`value="1 typed"`, "checked", `action="/buckets"`},
		model.ActionImportCreate:   {`value="1 typed"`, `value="typed"`, `action="/imports"`},
		model.ActionBackupCreate:   {`action="/databases/db_00/backups"`},
		model.ActionBackupRestore:  {`action="/databases/db_00/backups/bkp_00/restore"`},
		model.ActionRecoveryCreate: {"shop0"},
		model.ActionRecoveryUndo:   {"shop0"},
	}
	for _, r := range routes() {
		if model.OperationFor(r.action).Rate == model.RateNone {
			continue
		}
		path := strings.NewReplacer("POST ", "", "/buckets/{id}", "/buckets/bucket_1", "{id}", "db_00", "{backup}", "bkp_00").Replace(r.pattern)
		got := c.post(t, path, typed)
		for n := 0; got.status != http.StatusTooManyRequests && n < 50; n++ {
			got = c.post(t, path, typed)
		}
		if got.status != http.StatusTooManyRequests || !strings.Contains(got.page, "try again in ") {
			t.Errorf("%s: %d, and not how long to wait", path, got.status)
		}
		for _, want := range append(shows[r.action], "notice bad") {
			if !strings.Contains(got.page, want) {
				t.Errorf("%s: the page does not show %s", path, want)
			}
		}
		delete(shows, r.action)
	}
	if len(shows) > 0 {
		t.Errorf("there are no forms for %v", shows)
	}
}

// TestPublicFolders sets the prefixes below which files are public, one a line.
func TestPublicFolders(t *testing.T) {
	t.Parallel()
	c := openConsole(t, 0)
	for text, want := range map[string]int{"images/\r\nfonts/\r\n\r\n": http.StatusSeeOther, "images/*": http.StatusUnprocessableEntity} {
		got := c.post(t, "/buckets/bucket_1/settings", url.Values{"public_prefixes": {text}})
		if got.status != want {
			t.Errorf("%q: %d, want %d", text, got.status, want)
		}
		if want != http.StatusSeeOther && !strings.Contains(got.page, ">images/*</textarea>") {
			t.Error("what was typed is lost")
		}
	}
	if page := c.get(t, "/buckets/bucket_1"); !strings.Contains(page, "fonts/\nimages/</textarea>") || !strings.Contains(page, "public in part") {
		t.Error("the public folders are not shown")
	}
	c.post(t, "/buckets/bucket_1/settings", url.Values{"public_prefixes": {""}})
	if page := c.get(t, "/buckets/bucket_1"); strings.Contains(page, "public in part") {
		t.Error("the public folders are not removed")
	}
}

// TestWebsiteForm makes a website of a bucket, changes it, which keeps its rules, and ends it.
func TestWebsiteForm(t *testing.T) {
	t.Parallel()
	c := openConsole(t, 0)
	form := func(want int, fields ...string) string {
		t.Helper()
		values := url.Values{"index_document": {fields[0]}, "error_document": {fields[1]}, "redirect": {fields[2]}}
		got := c.post(t, "/buckets/bucket_1/website", values)
		if got.status != want {
			t.Errorf("%q: %d, want %d", fields, got.status, want)
		}
		return got.page
	}
	if page := c.get(t, "/buckets/bucket_1"); strings.Contains(page, "/website") {
		t.Error("a website is offered, and none are served")
	}
	form(http.StatusForbidden, "index.html", "", "")
	c.engine.Core.Config.WebsiteURL = "http://web.test"
	form(http.StatusSeeOther, "index.html", "404.html", "")
	if page := c.get(t, "/buckets/bucket_1"); !strings.Contains(page, `href="http://files.web.test/"`) || !strings.Contains(page, `value="404.html"`) || !strings.Contains(page, "Nothing of it can be seen") {
		t.Error("the website is not shown")
	}
	if page := form(http.StatusUnprocessableEntity, "index.html", "", "https://example.com"); !strings.Contains(page, `value="https://example.com"`) {
		t.Error("what was typed is lost")
	}
	err := c.engine.Core.Meta.Update(func(tx *meta.Tx) error {
		_, err := tx.Buckets().Update("bucket_1", func(b *model.Bucket) error {
			b.Website.Rules = []model.WebsiteRule{{Prefix: "old/", Redirect: model.WebsiteRedirect{Key: new("new")}}}
			return nil
		})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	form(http.StatusSeeOther, "home.html", "", "")
	if page := c.get(t, "/buckets/bucket_1"); !strings.Contains(page, "1 rule for single paths") || !strings.Contains(page, `value="home.html"`) {
		t.Error("the rule is lost")
	}
	form(http.StatusSeeOther, "", "", "https://example.com")
	if page := c.get(t, "/buckets/bucket_1"); !strings.Contains(page, `value="https://example.com"`) {
		t.Error("the redirect is not shown")
	}
	form(http.StatusSeeOther, "", "", "")
	if page := c.get(t, "/buckets/bucket_1"); strings.Contains(page, "files.web.test") {
		t.Error("the website is still there")
	}
}

// TestBucketsAreNotEmptiedUnseen checks that deleting a bucket deletes files
// only if the user knew of them.
func TestBucketsAreNotEmptiedUnseen(t *testing.T) {
	t.Parallel()
	c := openConsole(t, 0)
	for form, want := range map[string]int{
		"/delete confirm=files&files=0":                 http.StatusConflict,
		"/delete confirm=files":                         http.StatusConflict,
		"/delete files=300":                             http.StatusUnprocessableEntity,
		"/expiry expire_after_days=1":                   http.StatusUnprocessableEntity,
		"/expiry expire_after_days=x&confirm=files":     http.StatusUnprocessableEntity,
		"/expiry expire_after_days=36000&confirm=files": http.StatusSeeOther,
	} {
		path, fields, _ := strings.Cut(form, " ")
		values, err := url.ParseQuery(fields)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.post(t, "/buckets/bucket_1"+path, values); got.status != want {
			t.Errorf("%s: %d, want %d", form, got.status, want)
		}
	}
	if page := c.get(t, "/buckets/bucket_1"); !strings.Contains(page, `value="36000"`) || !strings.Contains(page, "300 files") {
		t.Error("the bucket has not all its files, or forgot how long it keeps them")
	}
	if got := c.post(t, "/buckets/bucket_1/delete", url.Values{"confirm": {"files"}, "files": {"300"}}); got.status != http.StatusSeeOther {
		t.Errorf("what is told: %d", got.status)
	}
}

// TestNamesAreConfirmedAsTheyAreTyped checks that characters that a user cannot
// see or type do not prevent confirmation.
func TestNamesAreConfirmedAsTheyAreTyped(t *testing.T) {
	t.Parallel()
	c := openConsole(t, 0)
	for key, typed := range map[string]string{
		" a  b ": "a b", "e\u0301.txt": "é.txt", "é.txt": "e\u0301.txt", "plain": " plain ", "\u00a0c": "c",
	} {
		if got := c.send(t, http.MethodPut, "/buckets/bucket_1?"+url.Values{"key": {key}}.Encode(), "", strings.NewReader("x")); got.status != http.StatusNoContent {
			t.Fatalf("%q: %d, %s", key, got.status, got.page)
		}
		if got := c.post(t, "/buckets/bucket_1/objects/delete", url.Values{"key": {key}, "confirm": {typed + "!"}}); got.status != http.StatusUnprocessableEntity {
			t.Errorf("%q by another name: %d", key, got.status)
		}
		if got := c.post(t, "/buckets/bucket_1/objects/delete", url.Values{"key": {key}, "confirm": {typed}}); got.status != http.StatusSeeOther {
			t.Errorf("%q as %q: %d", key, typed, got.status)
		}
	}
}

// TestExtensionsAreNotDroppedUnseen drops an extension only if its name is typed. The database does not run.
func TestExtensionsAreNotDroppedUnseen(t *testing.T) {
	t.Parallel()
	c := openConsole(t, 0)
	for typed, want := range map[string]int{"": http.StatusUnprocessableEntity, "pg_cron!": http.StatusUnprocessableEntity, "pg_cron": http.StatusConflict} {
		if got := c.post(t, "/databases/db_00/extensions/delete", url.Values{"name": {"pg_cron"}, "confirm": {typed}}); got.status != want {
			t.Errorf("typed %q: %d, want %d", typed, got.status, want)
		}
	}
}

// TestRolesAndSlotsAreNotDroppedUnseen deletes a role and drops a slot only if its name is typed. The database does not run.
func TestRolesAndSlotsAreNotDroppedUnseen(t *testing.T) {
	t.Parallel()
	c := openConsole(t, 0)
	for path, field := range map[string]string{"roles/delete": "role", "replication/drop-slot": "slot"} {
		for typed, want := range map[string]int{"": http.StatusUnprocessableEntity, "left!": http.StatusUnprocessableEntity, "left": http.StatusConflict} {
			if got := c.post(t, "/databases/db_00/"+path, url.Values{field: {"left"}, "confirm": {typed}}); got.status != want {
				t.Errorf("%s, typed %q: %d, want %d", path, typed, got.status, want)
			}
		}
	}
}

// TestLogLevels shows a log by levels in any case, and refuses those that do not exist.
func TestLogLevels(t *testing.T) {
	t.Parallel()
	c := openConsole(t, 0)
	if page := c.get(t, "/databases/db_00/log?level=error"); !strings.Contains(page, "<option selected>ERROR") {
		t.Error("the level in lower case is not that of the form")
	}
	got := c.send(t, http.MethodGet, "/databases/db_00/log?level=loud", "", nil)
	if got.status != http.StatusUnprocessableEntity || !strings.Contains(got.page, "must be one of LOG, WARNING, ERROR") {
		t.Errorf("%d: %s", got.status, got.page)
	}
}

// TestHiddenTicksAreNotMeant checks that a key gets only the options that were
// visible when it was created.
func TestHiddenTicksAreNotMeant(t *testing.T) {
	t.Parallel()
	c := openConsole(t, 0)
	for preset, deletes := range map[model.Preset]bool{
		model.PresetReadOnly: false, model.PresetDeveloper: false, model.PresetFullAccess: true, model.PresetCustom: true,
	} {
		form := url.Values{"name": {"a key"}, "preset": {string(preset)}, "scopes": {"storage:read"}, "expires": {"1h"}, "allow_dangerous": {"on"}}
		if got := c.post(t, "/keys", form); got.status != http.StatusOK {
			t.Fatalf("%s: %d", preset, got.status)
		}
		newest := strings.SplitAfter(c.get(t, "/keys"), "</tr>")[1]
		if !strings.Contains(newest, presetName(preset)) || strings.Contains(newest, "and delete") != deletes {
			t.Errorf("%s: %s", preset, newest)
		}
	}
}

// TestPagesSayWhatIsThere checks pages for facts that are easy to get wrong.
func TestPagesSayWhatIsThere(t *testing.T) {
	t.Parallel()
	c := openConsole(t, 0)
	for path, want := range map[string]string{
		"/":                                       ">default<", // the project, older than a hundred others
		"/imports/imp_1":                          "1200 objects",
		"/buckets/bucket_1?prefix=a%2F%2Fb%2F":    ">(no name)<",
		"/databases/db_busy":                      "data-live",
		"/databases/db_busy/settings":             "data-live",
		"/databases/db_busy/log":                  "data-live",
		"/databases/db_busy/backups/bkp_busy":     "data-live",
		"/audit":                                  " UTC</time>",
		"/buckets/bucket_1?prefix=folder1%2F":     "Delete for good",
		"/imports/imp_2":                          "The source does not answer",
		"/imports/imp_1?":                         "1100 more; the API lists the first 1000",
		"/databases/db_busy/settings?done=backup": "Look again",
	} {
		if page := c.get(t, path); !strings.Contains(page, want) {
			t.Errorf("%s does not say %s", path, want)
		}
	}
	page := c.send(t, http.MethodGet, "/databases/db_01/tables", "", nil).page
	if !strings.Contains(page, `role="alert"`) || strings.Contains(page, "No tables yet") {
		t.Error("of a database that does not run it is said that it has no tables")
	}
}

// TestNoBackupIsAWarning checks that a missing backup is shown as a warning.
func TestNoBackupIsAWarning(t *testing.T) {
	t.Parallel()
	page := mustPage(t, "overview.html")
	for _, unprotected := range []bool{false, true} {
		var text strings.Builder
		if err := page.ExecuteTemplate(&text, "verified-backup", databases.View{Unprotected: unprotected}); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(text.String(), "warn") != unprotected {
			t.Errorf("unprotected %t: %s", unprotected, &text)
		}
	}
}

// TestKeptFilesAreNotGoneForGood checks that the page says so if the operator
// keeps deleted files.
func TestKeptFilesAreNotGoneForGood(t *testing.T) {
	t.Parallel()
	page := mustPage(t, "bucket.html")
	var text bytes.Buffer
	data := bucketData{Kept: 48 * time.Hour}
	data.Items = []objects.ObjectView{{Object: model.Object{Key: "a"}}}
	if err := page.ExecuteTemplate(&text, "layout", view{User: model.User{ID: "u", Role: model.RoleOwner}, Data: data}); err != nil {
		t.Fatal(err)
	}
	if strings.Count(text.String(), "brought back from the trash for 2 days") != 2 || strings.Contains(text.String(), "Delete for good") || strings.Contains(text.String(), "cannot be undone") {
		t.Error("the page says that a file or the bucket is gone for good which is kept")
	}
}

// TestAuditAreasAreAll compares the areas with the actions that exist.
func TestAuditAreasAreAll(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("../engine/model/operation.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, action := range regexp.MustCompile(`Action = "([a-z_]+)\.`).FindAllStringSubmatch(string(source), -1) {
		if !slices.Contains(auditAreas(), action[1]) {
			t.Errorf("one cannot filter by %s", action[1])
		}
	}
}

// TestUploadLink makes a link on the page of a folder, which shows it once.
func TestUploadLink(t *testing.T) {
	t.Parallel()
	c := openConsole(t, 10)
	for name, want := range map[string]int{"folder1/": http.StatusOK, "a.txt": http.StatusOK, "..": http.StatusUnprocessableEntity} {
		got := c.post(t, "/buckets/bucket_1/upload-links", url.Values{"prefix": {"folder1/"}, "name": {name}, "hours": {"24"}})
		if got.status != want || strings.Contains(got.page, "/objects/bucket_1/"+name+"?link=") != (want == http.StatusOK) {
			t.Errorf("%s: %d", name, got.status)
		}
	}
	if got := c.post(t, "/buckets/bucket_1/upload-links", url.Values{"name": {"a"}, "hours": {"169"}}); got.status != http.StatusUnprocessableEntity {
		t.Errorf("a link for 169 hours: %d", got.status)
	}
	if page := c.get(t, "/buckets/bucket_1/object?key=folder1%2Ffile1.txt"); !strings.Contains(page, "current") {
		t.Error("the object's page shows no current version")
	}
}

// TestCancelWhatIsShown: the form that cancels names the operation that the page shows, which may have ended when it is sent.
func TestCancelWhatIsShown(t *testing.T) {
	t.Parallel()
	db := databaseData{View: databases.View{
		Database: model.Database{ID: "db_1", Name: "shop"}, RunningOp: &model.DatabaseOperation{ID: "op_1", Type: model.OperationRestore},
	}}
	var page strings.Builder
	shown := view{Path: "/databases/db_1/settings", User: model.User{Role: model.RoleOwner}, Data: propertiesData{databaseData: db}}
	if err := mustPage(t, "database_settings.html").ExecuteTemplate(&page, "content", shown); err != nil {
		t.Fatal(err)
	}
	if fields := formOn(t, page.String(), "/databases/db_1/cancel"); fields.Get("operation") != "op_1" {
		t.Errorf("it sends %v", fields)
	}
}
