package s3

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7/pkg/signer"

	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/internal/testenv"
)

// stranger sends requests of a holder of presigned URLs and forms to an endpoint, from an address.
type stranger struct {
	endpoint http.Handler
	address  string
	// known counts the requests that made their client a known one.
	known int
}

func (w *world) stranger(address string) *stranger {
	s := &stranger{address: address}
	s.endpoint = New(w.engine, Options{URL: "http://s3.test", Log: slog.New(slog.DiscardHandler), Known: func(*http.Request) { s.known++ }})
	return s
}

func (s *stranger) send(r *http.Request) int {
	r.RemoteAddr = s.address + ":1"
	w := httptest.NewRecorder()
	s.endpoint.ServeHTTP(w, r)
	return w.Code
}

// presigned sends a request that is signed in its query.
func (s *stranger) presigned(c credentials, method, path, body string) int {
	r := httptest.NewRequest(method, "http://s3.test"+path, strings.NewReader(body))
	return s.send(signer.PreSignV4(*r, c.id, c.secret, "", "us-east-1", 60))
}

// post sends a form.
func (s *stranger) post(to *url.URL, body, contentType string) int {
	r := httptest.NewRequest(http.MethodPost, "http://s3.test"+to.Path, strings.NewReader(body))
	r.Header.Set("Content-Type", contentType)
	return s.send(r)
}

// TestHolderIsNoKnownClient: a presigned URL or a form is no key, so connections of its holder make way for others.
func TestHolderIsNoKnownClient(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.objectIn(t, w.vault(t), "vault")
	s := w.stranger("192.0.2.1")
	to, fields := w.signedForm(t, w.org.full, nil)
	fields["key"] = "in/a"
	body, contentType := formOf(t, fields, "a", "content")
	for what, status := range map[string]int{
		"a download": s.presigned(w.org.full, "GET", "/vault/k", ""), "an upload": s.presigned(w.org.full, "PUT", "/vault/other", "x"), "a form": s.post(to, body, contentType),
	} {
		if status/100 != 2 {
			t.Errorf("%s is answered %d", what, status)
		}
	}
	if s.known != 0 {
		t.Errorf("%d requests without a key made a client known", s.known)
	}
	r := httptest.NewRequest(http.MethodGet, "http://s3.test/vault/k", nil)
	r.Header.Set("X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD")
	if status := s.send(signer.SignV4(*r, w.org.full.id, w.org.full.secret, "", "us-east-1")); status != 200 || s.known != 1 {
		t.Errorf("with the key: %d, and %d requests made a client known", status, s.known)
	}
}

// TestHolderFloods: the holder of a presigned URL or of a form is limited by its address, and by reads and by what is
// refused adds few entries to the audit log. Every upload is logged.
func TestHolderFloods(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.objectIn(t, w.vault(t), "vault")
	s, full, began := w.stranger("192.0.2.1"), w.org.full, time.Now()
	to, fields := w.signedForm(t, full, nil)
	fields["key"] = "out/a"
	body, contentType := formOf(t, fields, "a", "content")
	const uploads = 100
	for n := range uploads {
		if status := s.presigned(full, "PUT", "/vault/other", "x"); status != 200 {
			t.Fatalf("upload %d is answered %d", n, status)
		}
		if status := s.post(to, body, contentType); status != 403 {
			t.Fatalf("a form against its policy is answered %d", status)
		}
	}
	reads, status := 0, 200
	for ; status == 200 && reads < 60_000; reads++ { // a slow machine takes longer than the minute of a budget
		status = s.presigned(full, "HEAD", "/vault/k", "")
	}
	if status != http.StatusServiceUnavailable || reads < 6000 {
		t.Errorf("after %d downloads: %d", reads, status)
	}
	for address, want := range map[string]int{"192.0.2.2": 200, "127.0.0.1": 200} {
		if status := w.stranger(address).presigned(full, "HEAD", "/vault/k", ""); status != want {
			t.Errorf("%s: %d, want %d", address, status, want)
		}
	}
	if status := s.presigned(full, "PUT", "/vault/other", "x"); status != 200 {
		t.Errorf("an upload after many downloads: %d", status)
	}
	logged := map[model.Outcome]map[model.Action]int{}
	testenv.Eventually(t, "the entries of all uploads", func() bool {
		logged = map[model.Outcome]map[model.Action]int{model.OutcomeSuccess: {}, model.OutcomeDenied: {}, model.OutcomeError: {}}
		for page, more := 1, true; more; page++ {
			var part []model.AuditEntry
			var err error
			if part, more, err = w.engine.Core.AuditList(&model.Call{Organization: w.org.id}, core.AuditFilter{}, page, 100); err != nil {
				t.Fatal(err)
			}
			for _, e := range part {
				if e.Details["link"] != "" {
					logged[e.Outcome][e.Action]++
				}
			}
		}
		return logged[model.OutcomeSuccess][model.ActionObjectUpload] == uploads+1
	})
	most := 33 * (int(time.Since(began).Minutes()) + 2)
	refused := logged[model.OutcomeDenied][model.ActionObjectUpload] + logged[model.OutcomeError][model.ActionObjectUpload]
	if downloads := logged[model.OutcomeSuccess][model.ActionObjectGet]; downloads == 0 || downloads > most || refused == 0 || refused > most {
		t.Errorf("%d downloads and %d refused uploads are logged, of which there may be %d", downloads, refused, most)
	}
}
