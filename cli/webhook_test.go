package cli_test

import (
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"testing"
	"time"

	"holdfast/cli/client"
	"holdfast/server/api/wire"
)

// receiveWebhooks receives the requests of a webhook at an address, and verifies them.
func receiveWebhooks(t *testing.T, address, secret string) <-chan wire.Event {
	t.Helper()
	received := make(chan wire.Event, 10)
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	receiver := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		event, err := client.VerifyWebhook(secret, r.Header, body)
		if err != nil {
			t.Errorf("%v: %s", err, body)
		}
		received <- event
	})}
	go func() { _ = receiver.Serve(listener) }()
	t.Cleanup(func() { _ = receiver.Close() })
	return received
}

// TestWebhookSurvivesKill kills the appliance between a backup and the delivery of its event: the receiver is down,
// and the next run of the appliance delivers once it is up.
func TestWebhookSurvivesKill(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.start("--webhook-allow-private")
	address := freeAddress(t)
	var hook wire.WebhookSecret
	m.must("POST", "/webhooks", map[string]any{"name": "pager", "url": "http://" + address + "/hook", "events": []string{"backup.completed"}}, &hook)
	db := m.createDatabase("shop")
	b := m.backup(db.ID)
	m.kill()

	received := receiveWebhooks(t, address, hook.Secret)
	m.start("--webhook-allow-private")
	select {
	case event := <-received:
		if event.Type != "backup.completed" || event.Data.Resource.ID != b.ID || *event.Data.DatabaseID != db.ID {
			t.Errorf("%+v", event)
		}
	case <-time.After(time.Minute):
		t.Fatal("nothing was delivered")
	}
	var deliveries []wire.Delivery
	m.must("GET", "/webhooks/"+hook.ID+"/deliveries", nil, &deliveries)
	if len(deliveries) != 1 || deliveries[0].Attempts < 1 {
		t.Errorf("%+v", deliveries)
	}
}

// TestWebhookSurvivesTheMachine loses the machine between a backup and the delivery of its event: the machine that is
// recovered from the off-site copy delivers it, with the same id, and tells that it was recovered.
func TestWebhookSurvivesTheMachine(t *testing.T) {
	t.Parallel()
	old := newMachine(t)
	c := old.prepareCopy(t)
	old.start(append(c.serveFlags(), "--webhook-allow-private")...)
	address := freeAddress(t)
	var hook wire.WebhookSecret
	old.must("POST", "/webhooks", map[string]any{"name": "pager", "url": "http://" + address + "/hook", "events": []string{"backup.completed", "recovery.*"}}, &hook)
	db := old.createDatabase("shop")
	b := old.backup(db.ID)
	var pending []wire.Delivery
	old.must("GET", "/webhooks/"+hook.ID+"/deliveries?status=pending", nil, &pending)
	pending = slices.DeleteFunc(pending, func(d wire.Delivery) bool { return d.Event.Data.Resource.ID != b.ID }) // but the first backup's
	if len(pending) != 1 {
		t.Fatalf("%+v", pending)
	}
	old.awaitCopied()
	old.killAll()
	if err := os.RemoveAll(old.dataDir); err != nil {
		t.Fatal(err)
	}

	received := receiveWebhooks(t, address, hook.Secret)
	fresh := old.elsewhere()
	fresh.recoverFrom(c, "--webhook-allow-private")
	want := map[string]bool{"backup.completed": true, "recovery.completed": true}
	for len(want) > 0 {
		select {
		case event := <-received:
			if event.Type == "backup.completed" && event.Data.Resource.ID != b.ID {
				continue // of the backup that the recovered database begins with
			}
			if event.Type == "backup.completed" && event.ID != pending[0].Event.ID {
				t.Errorf("%+v, and pending was %+v", event, pending[0].Event)
			}
			delete(want, event.Type)
		case <-time.After(3 * time.Minute):
			t.Fatalf("not delivered: %v\n%s", want, fresh.log.String())
		}
	}
}
