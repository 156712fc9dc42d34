package cli_test

import (
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"holdfast/cli/client"
	"holdfast/server/api/wire"
)

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
		event, err := client.VerifyWebhook(hook.Secret, r.Header, body)
		if err != nil {
			t.Errorf("%v: %s", err, body)
		}
		received <- event
	})}
	go func() { _ = receiver.Serve(listener) }()
	t.Cleanup(func() { _ = receiver.Close() })
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
