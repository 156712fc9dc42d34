package cli_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestConsoleRunsItsOwnScriptOnly injects elements into a page, as an attacker
// could through a template bug. They load scripts that a user uploaded to the
// same origin.
func TestConsoleRunsItsOwnScriptOnly(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.start()
	object := m.publicObject("application/javascript", "document.documentElement.dataset.ran = 'evil'")
	if !strings.HasPrefix(object, strings.TrimSuffix(m.api, "/v1")+"/") {
		t.Fatalf("%s is on another origin than the console", object)
	}
	b := m.browse(t)
	b.setUp(m)
	b.open("/keys/new")
	b.until("run the console's own script", `document.querySelector('[role=status].unseen') !== null`)
	own := b.value(`document.querySelector('script').integrity`)
	for name, attributes := range map[string]string{
		"an object": "{}", "an object with the hash of another": fmt.Sprintf("{integrity: %q}", own),
		"a module": "{type: 'module'}", "a script with a nonce": "{nonce: 'x'}",
	} {
		b.value(fmt.Sprintf(`{
			delete document.documentElement.dataset.loaded;
			const script = Object.assign(document.createElement('script'), %s, {src: %q});
			script.onload = () => { document.documentElement.dataset.loaded = 'loaded'; };
			script.onerror = () => { document.documentElement.dataset.loaded = 'refused'; };
			document.head.append(script);
			''
		}`, attributes, object))
		b.until("load or refuse "+name, `'loaded' in document.documentElement.dataset`)
		if b.is(`'ran' in document.documentElement.dataset`) || b.value(`document.documentElement.dataset.loaded`) != "refused" {
			t.Errorf("%s runs in the console", name)
		}
	}
	b.value(fmt.Sprintf(`navigator.serviceWorker.register(%q, {scope: '/objects/'}).then(() => 'registered', () => 'refused').then((what) => { document.documentElement.dataset.worker = what; }); ''`, object))
	b.until("refuse a service worker", `document.documentElement.dataset.worker === 'refused'`)
	for _, problem := range b.forget() {
		if !strings.Contains(problem, "blocked") && !strings.Contains(problem, "Content Security Policy") && !strings.Contains(problem, "integrity") {
			t.Error(problem)
		}
	}
}

// publicObject stores an object in a new public bucket and returns its URL.
func (m *machine) publicObject(contentType, content string) string {
	m.t.Helper()
	var bucket struct{ ID string }
	m.must("POST", "/buckets", map[string]any{"project": m.project(), "name": "public", "public": true}, &bucket)
	request, err := http.NewRequest(http.MethodPost, m.api+"/buckets/"+bucket.ID+"/objects?key=script.js", strings.NewReader(content))
	if err != nil {
		m.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+m.key)
	request.Header.Set("Content-Type", contentType)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		m.t.Fatal(err)
	}
	defer answer.Body.Close()
	var stored struct {
		Data struct {
			URL string `json:"public_url"`
		}
	}
	if err := json.NewDecoder(answer.Body).Decode(&stored); err != nil || stored.Data.URL == "" {
		m.t.Fatalf("%s, %v: %+v", answer.Status, err, stored)
	}
	return stored.Data.URL
}
