package webhooks

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
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

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/internal/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// room is a Service with its own metadata.
type room struct {
	*Service
	t    *testing.T
	dir  string
	cfg  core.Webhooks
	stop func()
}

func openRoom(t *testing.T, cfg core.Webhooks) *room {
	t.Helper()
	r := &room{t: t, dir: t.TempDir(), cfg: cfg}
	r.open()
	t.Cleanup(func() { r.stop() })
	return r
}

func (r *room) open() {
	r.t.Helper()
	db, err := meta.Open(filepath.Join(r.dir, core.MetadataFile))
	if err != nil {
		r.t.Fatal(err)
	}
	c, err := core.New(core.Config{DataDir: r.dir, Clock: time.Now, Log: slog.New(slog.DiscardHandler), Webhooks: r.cfg}, db)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := c.Begin(); err != nil {
		r.t.Fatal(err)
	}
	if r.Service, err = New(c); err != nil {
		r.t.Fatal(err)
	}
	r.Delays = slices.Repeat([]time.Duration{time.Millisecond}, 1000)
	c.Background(r.Run)
	r.stop = func() {
		c.Stop()
		c.Work.Wait()
		c.Audits.Close()
		if err := db.Close(); err != nil {
			r.t.Error(err)
		}
	}
}

// restart stops the service as a crash would leave it, and opens it again.
func (r *room) restart() {
	r.t.Helper()
	r.stop()
	r.open()
}

func (r *room) call(action model.Action) *model.Call { return r.callOf(action, "org_1") }

func (r *room) callOf(action model.Action, organization string) *model.Call {
	return &model.Call{Operation: model.Operation{Action: action}, Actor: model.Actor{Type: model.ActorOperator}, Organization: organization}
}

// create makes a webhook and returns its secret.
func (r *room) create(organization, url string, events ...string) (model.Webhook, string) {
	r.t.Helper()
	w, secret, err := r.Create(r.callOf(model.ActionWebhookCreate, organization), NewWebhook{Name: "hook", URL: url, Events: events})
	if err != nil {
		r.t.Fatal(err)
	}
	return w, secret.Reveal()
}

// happen records an event, and returns its id.
func (r *room) happen(organization string, t model.EventType) {
	r.t.Helper()
	r.core.Emit(model.Event{
		Type: t, Organization: organization, Resource: model.Resource{Type: model.ResourceBackup, ID: "bkp_1", Name: "shop"}, Message: "it happened",
	})
}

func (r *room) deliveries(w model.Webhook) []model.Delivery {
	r.t.Helper()
	list, err := r.Deliveries(r.callOf(model.ActionWebhookDeliveries, w.Organization), w.ID, DeliveryFilter{}, core.Page{Limit: core.MaxLimit})
	if err != nil {
		r.t.Fatal(err)
	}
	return list.Items
}

func (r *room) await(w model.Webhook, what string, done func(model.Delivery) bool) (d model.Delivery) {
	r.t.Helper()
	testenv.Eventually(r.t, what, func() bool {
		all := r.deliveries(w)
		if len(all) == 0 {
			return false
		}
		d = all[0]
		return done(d)
	})
	return d
}

// receiver is a receiver's end.
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

func (r *receiver) await(t *testing.T, what string, n int) []received {
	t.Helper()
	var got []received
	testenv.Eventually(t, what, func() bool {
		r.mu.Lock()
		got = slices.Clone(r.got)
		r.mu.Unlock()
		return len(got) >= n
	})
	return got
}

// verifies reports whether a request is signed with a secret.
func (m received) verifies(t *testing.T, secret string) bool {
	t.Helper()
	key, err := decodeSecret(secret)
	if err != nil {
		t.Fatal(err)
	}
	want := signatures([][]byte{key}, m.header.Get("Webhook-Id"), m.header.Get("Webhook-Timestamp"), m.body)
	return slices.Contains(strings.Fields(m.header.Get("Webhook-Signature")), want)
}

// private lets the webhooks of a test reach its receivers.
func private() core.Webhooks { return core.Webhooks{AllowPrivate: true} }

// TestDelivery: what a webhook selects arrives once, signed with its secret and, after a rotation, with both.
func TestDelivery(t *testing.T) {
	to := newReceiver(t)
	r := openRoom(t, private())
	w, secret := r.create("org_1", to.URL+"/hook?token=hidden", "backup.*")
	r.happen("org_1", model.EventKeyCreated)
	r.happen("org_2", model.EventBackupFailed)
	r.happen("org_1", model.EventBackupFailed)
	got := to.await(t, "the event", 1)[0]
	if !got.verifies(t, secret) || !strings.Contains(string(got.body), `"type":"backup.failed"`) || strings.Contains(string(got.body), "hidden") {
		t.Errorf("%v %s", got.header, got.body)
	}
	d := r.await(w, "the delivery's record", func(d model.Delivery) bool { return d.Status == model.DeliveryDelivered })
	if d.Attempts != 1 || d.LastStatus != 200 || d.Event.ID != got.header.Get("Webhook-Id") {
		t.Errorf("%+v", d)
	}
	_, next, err := r.RotateSecret(r.call(model.ActionWebhookRotate), w.ID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Ping(r.call(model.ActionWebhookPing), w.ID); err != nil {
		t.Fatal(err)
	}
	got = to.await(t, "the ping", 2)[1]
	if !got.verifies(t, secret) || !got.verifies(t, next.Reveal()) || !strings.Contains(string(got.body), "webhook.ping") {
		t.Errorf("%v %s", got.header, got.body)
	}
	if _, err := r.Resend(r.call(model.ActionWebhookResend), w.ID, d.ID); err != nil {
		t.Fatal(err)
	}
	if again := to.await(t, "the resent event", 3)[2]; again.header.Get("Webhook-Id") != d.Event.ID {
		t.Errorf("resent as %v", again.header)
	}
	if n := len(r.deliveries(w)); n != 2 {
		t.Errorf("there are %d deliveries", n)
	}
}

// TestRetries: a failed delivery is sent again with the same id, also after a restart, until it is given up.
func TestRetries(t *testing.T) {
	for name, status := range map[string]int{"error": http.StatusInternalServerError, "redirect": http.StatusFound} {
		t.Run(name, func(t *testing.T) {
			to := newReceiver(t)
			r := openRoom(t, private())
			w, _ := r.create("org_1", to.URL, "*")
			to.status.Store(int64(status))
			r.happen("org_1", model.EventBackupFailed)
			testenv.Eventually(t, "attempts", func() bool { return to.asked.Load() >= 3 })
			r.restart()
			to.status.Store(http.StatusOK)
			got := to.await(t, "the event", 1)[0]
			d := r.await(w, "the delivery's record", func(d model.Delivery) bool { return d.Status == model.DeliveryDelivered })
			if d.Attempts < 3 || got.header.Get("Webhook-Id") != d.Event.ID {
				t.Errorf("%+v arrived as %v", d, got.header)
			}
		})
	}
}

func TestGivingUp(t *testing.T) {
	to := newReceiver(t)
	to.status.Store(http.StatusTeapot)
	r := openRoom(t, private())
	r.stop()
	r.open()
	r.Delays = r.Delays[:2]
	w, _ := r.create("org_1", to.URL, "*")
	r.happen("org_1", model.EventBackupFailed)
	d := r.await(w, "the end", func(d model.Delivery) bool { return d.Status == model.DeliveryFailed })
	if d.Attempts != 3 || d.LastStatus != http.StatusTeapot || d.CompletedAt == nil || strings.Contains(d.LastError, to.URL) {
		t.Errorf("%+v", d)
	}
	to.status.Store(http.StatusGone)
	r.happen("org_1", model.EventBackupFailed)
	testenv.Eventually(t, "the webhook to be disabled", func() bool {
		w, err := r.Get(r.call(model.ActionWebhookGet), w.ID)
		return err == nil && !w.Enabled && strings.Contains(w.DisabledReason, "410")
	})
	if _, err := r.Resend(r.call(model.ActionWebhookResend), w.ID, d.ID); model.CodeOf(err) != model.CodeConflict {
		t.Errorf("resent to a disabled webhook: %v", err)
	}
}

// TestChangesDuringAnAttempt: a resend during an attempt is not lost, and what the receiver at a former URL answers
// does not disable the webhook.
func TestChangesDuringAnAttempt(t *testing.T) {
	arrived, answer := make(chan struct{}, 10), make(chan int)
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		arrived <- struct{}{}
		select {
		case status := <-answer:
			w.WriteHeader(status)
		case <-req.Context().Done():
		}
	}))
	t.Cleanup(slow.Close)
	attempt := func() {
		t.Helper()
		testenv.Eventually(t, "an attempt", func() bool {
			select {
			case <-arrived:
				return true
			default:
				return false
			}
		})
	}
	r := openRoom(t, private())
	w, _ := r.create("org_1", slow.URL, "*")
	r.happen("org_1", model.EventBackupFailed)
	attempt()
	d := r.deliveries(w)[0]
	if _, err := r.Resend(r.call(model.ActionWebhookResend), w.ID, d.ID); err != nil {
		t.Fatal(err)
	}
	answer <- http.StatusOK
	attempt() // again
	to := newReceiver(t)
	if _, err := r.Update(r.call(model.ActionWebhookUpdate), w.ID, Change{URL: &to.URL}); err != nil {
		t.Fatal(err)
	}
	answer <- http.StatusGone
	to.await(t, "the event at the new URL", 1)
	r.await(w, "the delivery's record", func(d model.Delivery) bool { return d.Status == model.DeliveryDelivered && d.Attempts == 3 })
	if w, err := r.Get(r.call(model.ActionWebhookGet), w.ID); err != nil || !w.Enabled {
		t.Errorf("disabled for its former URL: %+v, %v", w, err)
	}
}

// TestSlowReceiver: a receiver that never answers holds up no other organization.
func TestSlowReceiver(t *testing.T) {
	release := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		select {
		case <-release:
		case <-req.Context().Done():
		}
	}))
	t.Cleanup(slow.Close)
	t.Cleanup(func() { close(release) })
	to := newReceiver(t)
	r := openRoom(t, private())
	for range model.MaxWebhooks {
		r.create("org_1", slow.URL, "*")
	}
	r.create("org_2", to.URL, "*")
	for range 2 * slotsInAll / model.MaxWebhooks {
		r.happen("org_1", model.EventBackupFailed)
	}
	r.happen("org_2", model.EventBackupFailed)
	to.await(t, "the other organization's event", 1)
	if _, _, err := r.Create(r.call(model.ActionWebhookCreate), NewWebhook{Name: "one more", URL: to.URL, Events: []string{"*"}}); model.CodeOf(err) != model.CodeForbidden {
		t.Errorf("one more webhook: %v", err)
	}
}

// TestSwitchingProtocols: a receiver that answers 101 and keeps the connection holds up neither its webhook nor a stop.
func TestSwitchingProtocols(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var kept sync.WaitGroup
	t.Cleanup(kept.Wait)
	t.Cleanup(func() { listener.Close() })
	kept.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			kept.Go(func() {
				defer conn.Close()
				_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
				_, _ = io.Copy(io.Discard, conn) // until the sender closes it
			})
		}
	})
	r := openRoom(t, private())
	r.Delays = nil // one attempt
	w, _ := r.create("org_1", "http://"+listener.Addr().String(), "*")
	r.happen("org_1", model.EventBackupFailed)
	testenv.Eventually(t, "the end of the attempt", func() bool {
		all := r.deliveries(w)
		return len(all) == 1 && all[0].Status == model.DeliveryFailed && all[0].LastStatus == http.StatusSwitchingProtocols
	})
}

// TestPrivateAddresses: without the operator's permission nothing private is reached, whatever the name.
func TestPrivateAddresses(t *testing.T) {
	to := newReceiver(t)
	public := destinations{}
	for _, url := range []string{to.URL, "https://127.0.0.1/", "https://[::1]/", "https://10.1.2.3/", "https://localhost/", "https://169.254.169.254/"} {
		if err := public.validate("url", url); model.CodeOf(err) != model.CodeValidation {
			t.Errorf("%s: %v", url, err)
		}
	}
	if err := (destinations{private: true}).validate("url", "http://169.254.169.254/"); model.CodeOf(err) != model.CodeValidation {
		t.Errorf("metadata, allowed: %v", err)
	}
	port := to.URL[strings.LastIndex(to.URL, ":"):]
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]"} {
		if _, err := public.dial(t.Context(), "tcp", host+port); !errors.Is(err, errPrivate) {
			t.Errorf("%s: %v", host, err)
		}
	}
	conn, err := (destinations{private: true}).dialPlain(t.Context(), "tcp", "localhost"+port)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	r := openRoom(t, private())
	w, _ := r.create("org_1", to.URL, "*")
	r.cfg = core.Webhooks{} // the operator changes their mind
	r.restart()
	r.happen("org_1", model.EventBackupFailed)
	d := r.await(w, "an attempt", func(d model.Delivery) bool { return d.Attempts > 0 })
	if to.asked.Load() != 0 || !strings.Contains(d.LastError, "not public") {
		t.Errorf("asked %d times: %s", to.asked.Load(), d.LastError)
	}
}

// TestFailuresSayNothingOfTheHost: what a service of a private network sends is not shown to the organization.
func TestFailuresSayNothingOfTheHost(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "SSH-2.0-private banner\r\n")
			_ = conn.Close()
		}
	})
	t.Cleanup(func() { _ = listener.Close(); serving.Wait() })
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(secure.Close)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	r := openRoom(t, private())
	for url, want := range map[string]string{
		"http://" + listener.Addr().String():  "did not answer with HTTP",
		"https://" + listener.Addr().String(): "does not speak TLS",
		secure.URL:                            "certificate is of an unknown authority",
		"http://" + closed.Addr().String():    "refused the connection",
		"https://hook.invalid/":               "has no address",
	} {
		w, _ := r.create("org_1", url, "*")
		r.happen("org_1", model.EventBackupFailed)
		d := r.await(w, "an attempt", func(d model.Delivery) bool { return d.Attempts > 0 })
		if !strings.HasSuffix(d.LastError, want) || strings.Contains(d.LastError, "SSH") {
			t.Errorf("%s: %q", url, d.LastError)
		}
		if err := r.Delete(r.call(model.ActionWebhookDelete), w.ID); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOperatorsWebhook: the operator receives alarms of every organization and of the machine, signed with the key file.
func TestOperatorsWebhook(t *testing.T) {
	to := newReceiver(t)
	file := filepath.Join(t.TempDir(), "webhook.secret")
	r := openRoom(t, core.Webhooks{OperatorURL: to.URL + "/hook?token=hidden", SecretFile: file})
	r.happen("org_1", model.EventBackupCompleted)
	r.happen("org_1", model.EventBackupFailed)
	r.happen("", model.EventDiskNearlyFull)
	text, err := os.ReadFile(file)
	info, statErr := os.Stat(file)
	if err != nil || statErr != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v %v", err, statErr)
	}
	for _, got := range to.await(t, "the alarms", 2) {
		if !got.verifies(t, strings.TrimSpace(string(text))) || strings.Contains(string(got.body), string(model.EventBackupCompleted)) {
			t.Errorf("%v %s", got.header, got.body)
		}
	}
	r.restart()
	if again, err := os.ReadFile(file); err != nil || string(again) != string(text) {
		t.Errorf("the key is another: %v", err)
	}
	if err := os.WriteFile(file, []byte("hunter2"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := loadKey(file); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%v", err)
	}
}

// TestDelete: a deleted webhook leaves no delivery.
func TestDelete(t *testing.T) {
	r := openRoom(t, core.Webhooks{})
	w, _ := r.create("org_1", "https://hook.invalid/", "*")
	r.happen("org_1", model.EventBackupFailed)
	if err := r.Delete(r.callOf(model.ActionWebhookDelete, "org_2"), w.ID); model.CodeOf(err) != model.CodeNotFound {
		t.Errorf("deleted by another organization: %v", err)
	}
	if err := r.Delete(r.call(model.ActionWebhookDelete), w.ID); err != nil {
		t.Fatal(err)
	}
	if err := r.core.Meta.View(func(tx *meta.Tx) error {
		totals, err := tx.Totals("org_1")
		if totals.Deliveries != 0 || totals.Pending != 0 || tx.Deliveries().Count() != 0 {
			t.Errorf("%+v", totals)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r.Run(ctx) // ends at once
}
