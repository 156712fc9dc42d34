package webhook

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"holdfast/engine/model"
	"holdfast/internal/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// receiver is the operator's end.
type receiver struct {
	*httptest.Server
	status atomic.Int64
	asked  atomic.Int64

	mu  sync.Mutex
	got []received
}

type received struct {
	header http.Header
	body   []byte
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{}
	r.status.Store(http.StatusOK)
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.asked.Add(1)
		status := int(r.status.Load())
		if status == http.StatusFound {
			w.Header().Set("Location", "/elsewhere")
		}
		body, _ := io.ReadAll(req.Body)
		if status == http.StatusOK {
			r.mu.Lock()
			r.got = append(r.got, received{req.Header, body})
			r.mu.Unlock()
		}
		if req.URL.Path == "/elsewhere" {
			t.Error("a redirect was followed")
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) await(t *testing.T, what string, done func([]received) bool) []received {
	t.Helper()
	var got []received
	testenv.Eventually(t, what, func() bool {
		r.mu.Lock()
		got = slices.Clone(r.got)
		r.mu.Unlock()
		return done(got)
	})
	return got
}

func open(t *testing.T, url string, log *bytes.Buffer, retries ...time.Duration) (*Sender, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "webhook.secret")
	s, err := Open(Options{URL: url, SecretFile: file, Retries: retries, Log: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s, file
}

func failure(n int) model.Event {
	return model.Event{
		ID: fmt.Sprintf("evt_%d", n), Type: model.EventBackupFailed, At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Organization: "org_1",
		Resource: model.Resource{Type: model.ResourceBackup, ID: "bkp_1", Name: "shop"}, Message: "it failed",
	}
}

// A receiver that knows the secret can verify the sender, the content and the time.
func TestSignedMessage(t *testing.T) {
	r := newReceiver(t)
	s, file := open(t, r.URL+"/hook?token=hidden", &bytes.Buffer{})
	s.Event(model.Event{ID: "evt_0", Type: model.EventBackupCompleted})
	s.Event(failure(1))
	got := r.await(t, "the message", func(got []received) bool { return len(got) == 1 })[0]
	text, err := os.ReadFile(file)
	info, statErr := os.Stat(file)
	if err != nil || statErr != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v %v %v", err, statErr, info.Mode())
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(strings.TrimSpace(string(text)), "whsec_"))
	if err != nil || len(key) != 32 {
		t.Fatalf("the secret %s: %v", text, err)
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", got.header.Get("webhook-id"), got.header.Get("webhook-timestamp"), got.body)
	if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); got.header.Get("webhook-signature") != want {
		t.Errorf("signed %s, want %s", got.header.Get("webhook-signature"), want)
	}
	var body map[string]any
	if err := json.Unmarshal(got.body, &body); err != nil || body["type"] != "backup.failed" || body["timestamp"] != "2026-01-02T03:04:05Z" {
		t.Errorf("%s, %v", got.body, err)
	}
	// The next start signs with the same key.
	if again, err := loadSecret(file); err != nil || !bytes.Equal(again, key) {
		t.Errorf("the key is another: %v", err)
	}
}

// A failed delivery is retried with the same id, and no part of the URL is logged.
func TestRetries(t *testing.T) {
	for name, status := range map[string]int{"error": http.StatusInternalServerError, "redirect": http.StatusFound} {
		t.Run(name, func(t *testing.T) {
			r := newReceiver(t)
			var log bytes.Buffer
			s, _ := open(t, r.URL+"/hook?token=hidden", &log, slices.Repeat([]time.Duration{time.Millisecond}, 1000)...)
			r.status.Store(int64(status))
			s.Event(failure(1))
			r.await(t, "attempts", func([]received) bool { return r.asked.Load() >= 3 })
			r.status.Store(http.StatusOK)
			got := r.await(t, "the message", func(got []received) bool { return len(got) == 1 })
			if id := got[0].header.Get("webhook-id"); id != "evt_1" {
				t.Errorf("the id is %s", id)
			}
			s.Close()
			if strings.Contains(log.String(), "hidden") {
				t.Errorf("logged: %s", &log)
			}
		})
	}
}

// An unreachable receiver costs only old messages: the newest are kept.
func TestQueueIsBounded(t *testing.T) {
	r := newReceiver(t)
	r.status.Store(http.StatusServiceUnavailable)
	var log bytes.Buffer
	s, _ := open(t, r.URL, &log, slices.Repeat([]time.Duration{100 * time.Millisecond}, 1000)...)
	for n := range 3 * maxWaiting {
		s.Event(failure(n))
	}
	r.status.Store(http.StatusOK)
	got := r.await(t, "the newest messages", func(got []received) bool {
		ids := map[string]bool{}
		for _, m := range got {
			ids[m.header.Get("webhook-id")] = true
		}
		for n := 2*maxWaiting + 1; n < 3*maxWaiting; n++ { // one may have been in transit meanwhile
			if !ids[fmt.Sprintf("evt_%d", n)] {
				return false
			}
		}
		return true
	})
	if len(got) > maxWaiting+2 {
		t.Errorf("%d came: more were kept than may", len(got))
	}
}

func TestUnreachableURLIsNotLogged(t *testing.T) {
	var log bytes.Buffer
	s, _ := open(t, "http://127.0.0.1:1/hook?token=hidden", &log, []time.Duration{}...)
	err := s.post(t.Context(), &message{id: "evt_1"})
	if err == nil || strings.Contains(err.Error(), "hidden") {
		t.Errorf("%v", err)
	}
}

func TestSecretFileOfSomethingElse(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("hunter2"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{SecretFile: file}); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%v", err)
	}
}
