package cli_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/internal/testenv"
	"holdfast/server/api/wire"
)

// TestConsoleWebhooks makes a webhook in the console, tests it, looks at its deliveries, and deletes it.
func TestConsoleWebhooks(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.start("--webhook-allow-private", "--warm", "0")
	b := m.browse(t)
	b.setUp(m)
	b.open("/webhooks")
	b.see("No webhooks yet")
	address := freeAddress(t)
	b.fill("#name", "pager")
	b.fill("#url", "http://"+address+"/hook")
	b.fill("#events", "backup.*, nothing.*")
	b.press("Make the webhook")
	b.see("selects no event")
	b.fill("#events", "backup.*, key.*")
	b.shot("webhooks")
	b.press("Make the webhook")
	b.see("shown only this once")
	b.shot("webhook-secret")
	secret := b.copied(0)
	b.press("I have copied it")
	b.see("Nothing was sent in the last seven days")
	for _, scope := range []string{"backup:list", "account:read", "database:read"} {
		b.see(scope)
	}
	hidden := func() {
		t.Helper()
		if !strings.HasPrefix(secret, "whsec_") || strings.Contains(b.value(`document.documentElement.outerHTML`), secret) {
			t.Errorf("the secret %q is shown again", secret)
		}
	}
	hidden()

	id := b.value(`location.pathname.split('/').pop()`)
	state := func(status wire.DeliveryStatus, attempts int) {
		t.Helper()
		testenv.Eventually(t, fmt.Sprintf("%d attempts", attempts), func() bool {
			var all []wire.Delivery
			m.must("GET", "/webhooks/"+id+"/deliveries", nil, &all)
			return len(all) == 1 && all[0].Status == status && all[0].Attempts >= attempts
		})
		b.open("/webhooks/" + id)
	}
	b.press("Send a test")
	b.see("The test is on its way")
	state(wire.DeliveryPending, 1)
	b.see("the host refused the connection")
	received := receiveWebhooks(t, address, secret)
	arrives := func() {
		t.Helper()
		select {
		case event := <-received:
			if event.Type != "webhook.ping" {
				t.Errorf("%+v", event)
			}
		case <-time.After(time.Minute):
			t.Fatal("nothing was delivered")
		}
	}
	arrives()
	state(wire.DeliveryDelivered, 2)
	b.see("delivered")
	b.shot("webhook")
	hidden()
	b.click("form[action$='/resend'] button")
	b.see("The delivery is sent again")
	arrives()
	state(wire.DeliveryDelivered, 3)

	b.press("Delete this webhook…")
	b.press("Delete pager")
	b.see("The webhook is deleted")
	b.see("No webhooks yet")
}
