package web

import (
	"bytes"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"holdfast/engine"
	"holdfast/engine/model"
)

// reply is an answer that was read whole.
type reply struct {
	status   int
	header   http.Header
	location string
	page     string
}

// send sends a request as it is, and follows no redirect.
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

// post sends a form as a browser does.
func (c *console) post(t *testing.T, path string, form url.Values) reply {
	t.Helper()
	return c.send(t, http.MethodPost, path, "application/x-www-form-urlencoded", strings.NewReader(form.Encode()))
}

// as signs in as somebody else.
func (c *console) as(t *testing.T, email string, role model.Role) *console {
	t.Helper()
	org, err := c.engine.OrganizationList()
	if err != nil {
		t.Fatal(err)
	}
	call := &model.Call{Actor: model.Actor{Type: model.ActorOperator}, Organization: org[0].ID}
	if _, err := c.engine.UserCreate(call, engine.NewUser{Email: email, Role: role, Password: model.NewSecret("correct horse battery")}); err != nil {
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

// nobody is somebody who is not signed in.
func (c *console) nobody() *console {
	other := *c
	other.client = &http.Client{}
	return &other
}

// TestFormsAreReadOrRefused: what cannot be read as a form is not an empty one.
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

// TestSignedOut: what was to be done is said not to have been done, and the way
// back is to the page it was done from.
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
