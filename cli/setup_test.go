package cli_test

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// TestSetupLink creates the first owner's account through the link of the first
// start, which works once.
func TestSetupLink(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.start()
	link, err := url.Parse(m.setup)
	if err != nil {
		t.Fatal(err)
	}
	if status, page := fetch(t, http.MethodGet, m.setup, nil); status != http.StatusOK || !strings.Contains(page, "Set up this appliance") {
		t.Errorf("the form: %d %s", status, page)
	}
	form := url.Values{"token": {link.Query().Get("token")}, "email": {"ada@example.com"}, "password": {"short"}}
	if status, page := fetch(t, http.MethodPost, m.setup, form); status != http.StatusUnprocessableEntity || !strings.Contains(page, "password: must have") {
		t.Errorf("a short password: %d %s", status, page)
	}
	form.Set("password", "sunshine1234")
	if status, page := fetch(t, http.MethodPost, m.setup, form); status != http.StatusUnprocessableEntity || !strings.Contains(page, "password: is easy to guess") {
		t.Errorf("a commonly used password: %d %s", status, page)
	}
	form.Set("password", "long enough for anybody")
	if status, page := fetch(t, http.MethodPost, m.setup, form); status != http.StatusOK {
		t.Errorf("set-up: %d %s", status, page)
	}
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		if status, _ := fetch(t, method, m.setup, form); status != http.StatusNotFound {
			t.Errorf("%s with the used link: %d", method, status)
		}
	}
	m.stop()
	m.start()
	if m.setup != "" {
		t.Error("there is an owner, and a set-up link all the same")
	}
}

func TestForeignNamesAreRefused(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.start()
	request, err := http.NewRequest(http.MethodGet, m.setup, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Host = "rebound.example"
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("a name that was pointed at this machine: %s", answer.Status)
	}
}

func fetch(t *testing.T, method, address string, form url.Values) (int, string) {
	t.Helper()
	request, err := http.NewRequest(method, address, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	page, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(page)
}
