package api

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"holdfast/engine/model"
	"holdfast/engine/webhooks"
	"holdfast/server/api/wire"
)

// TestEventsAreTheBodiesOfWebhooks: the body that the engine sends is what the description says.
func TestEventsAreTheBodiesOfWebhooks(t *testing.T) {
	t.Parallel()
	for _, e := range []model.Event{
		{ID: "event_1", Type: model.EventDiskNearlyFull, At: time.Unix(1, 500).UTC(), Message: "m"},
		{
			ID: "event_2", Type: model.EventBackupFailed, At: time.Unix(2, 0).UTC(), Organization: "org_1", Database: "db_1", Operation: "op_1",
			Resource: model.Resource{Type: model.ResourceBackup, ID: "bkp_1", Name: "shop"}, Message: "<m>", Took: time.Second,
		},
	} {
		want, err := json.Marshal(NewEvent(e))
		if got := webhooks.Payload(e); err != nil || string(got) != string(want) {
			t.Errorf("%s, want %s, %v", got, want, err)
		}
	}
}

// TestWebhooksOutliveTheirKeys: the webhook of a key that was revoked goes on, with the scopes that the key had.
func TestWebhooksOutliveTheirKeys(t *testing.T) {
	w := start(t)
	post := func(path, key, body string) request {
		return request{method: "POST", path: path, key: key, body: body, contentType: "application/json"}
	}
	maker := get[wire.CreatedKey](t, w.do(t, post("/account/api-keys", w.org.full, `{"name":"maker","scopes":["webhook:manage","account:read"]}`)))
	if got := w.do(t, post("/webhooks", maker.APIKey, `{"name":"pager","url":"https://hook.invalid/","events":["backup.*"]}`)); got.status != http.StatusForbidden {
		t.Errorf("the key selects what it may not see: %d", got.status)
	}
	hook := get[wire.WebhookSecret](t, w.do(t, post("/webhooks", maker.APIKey, `{"name":"pager","url":"https://hook.invalid/","events":["*"]}`)))
	if len(hook.Scopes) != 1 || hook.Scopes[0] != "account:read" {
		t.Errorf("%v", hook.Scopes)
	}
	if got := w.do(t, request{method: "DELETE", path: "/account/api-keys/" + maker.Key.ID, key: w.org.full}); got.status != http.StatusOK {
		t.Fatalf("%+v", got)
	}
	get[wire.CreatedKey](t, w.do(t, post("/account/api-keys", w.org.full, `{"name":"later","scopes":["database:read"]}`)))
	all := get[[]wire.Delivery](t, w.do(t, request{method: "GET", path: "/webhooks/" + hook.ID + "/deliveries", key: w.org.full}))
	if len(all) != 2 || all[0].Event.Type != "key.created" || all[1].Event.Type != "key.revoked" {
		t.Errorf("%+v", all)
	}
}

// TestWebhooks changes a webhook under the condition that nobody else has, and reads its deliveries.
func TestWebhooks(t *testing.T) {
	w := start(t)
	post := func(path, body string) request {
		return request{method: "POST", path: path, key: w.org.full, body: body, contentType: "application/json"}
	}
	answer := w.do(t, post("/webhooks", `{"name":"pager","url":"https://hook.invalid/","events":["backup.*","backup.*"]}`))
	hook := get[wire.WebhookSecret](t, answer)
	if len(hook.Events) != 1 || !hook.Enabled || hook.Secret == "" {
		t.Errorf("%+v", hook)
	}
	tag := answer.header.Get("ETag")
	change := request{
		method: "PATCH", path: "/webhooks/" + hook.ID, key: w.org.full, body: `{"enabled":false}`, contentType: "application/json",
		header: map[string]string{"If-Match": tag},
	}
	if got := get[wire.Webhook](t, w.do(t, change)); got.Enabled {
		t.Errorf("%+v", got)
	}
	if got := w.do(t, change); got.status != http.StatusPreconditionFailed {
		t.Errorf("changed with an old tag: %d", got.status)
	}
	if got := w.do(t, post("/webhooks/"+hook.ID+"/ping", "")); got.status != http.StatusConflict {
		t.Errorf("a disabled webhook is pinged: %d", got.status)
	}
	change.header, change.body = nil, `{}`
	if first, second := w.do(t, change), w.do(t, change); first.status != http.StatusOK || first.header.Get("ETag") != second.header.Get("ETag") {
		t.Errorf("a change of nothing changes the tag from %s to %s", first.header.Get("ETag"), second.header.Get("ETag"))
	}
	change.body = `{"enabled":true,"events":["key.created"]}`
	get[wire.Webhook](t, w.do(t, change))
	ping := get[wire.Delivery](t, w.do(t, post("/webhooks/"+hook.ID+"/ping", "")))
	all := get[[]wire.Delivery](t, w.do(t, request{method: "GET", path: "/webhooks/" + hook.ID + "/deliveries?status=pending", key: w.org.full}))
	if len(all) != 1 || all[0].ID != ping.ID || all[0].Event.Type != "webhook.ping" || all[0].Event.Data.Resource.ID != hook.ID {
		t.Errorf("%+v", all)
	}
	other := get[wire.WebhookSecret](t, w.do(t, post("/webhooks", `{"name":"other","url":"https://hook.invalid/","events":["*"]}`)))
	if got := w.do(t, post("/webhooks/"+other.ID+"/deliveries/"+ping.ID+"/resend", "")); got.status != http.StatusNotFound {
		t.Errorf("another webhook's delivery is sent again: %d", got.status)
	}
	if got := get[wire.WebhookSecret](t, w.do(t, post("/webhooks/"+hook.ID+"/rotate-secret", ""))); got.Secret == hook.Secret || got.PreviousUntil == nil {
		t.Errorf("%+v", got)
	}
	if got := w.do(t, request{method: "GET", path: "/webhooks", key: w.org.read}); got.status != http.StatusForbidden {
		t.Errorf("listed by a reader: %d", got.status)
	}
}
