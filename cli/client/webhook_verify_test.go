package client_test

import (
	"errors"
	"net/http"
	"strconv"
	"testing"
	"time"

	"holdfast/cli/client"
)

// TestVerifyWebhook refuses everything but the body that was signed with the secret, soon after.
func TestVerifyWebhook(t *testing.T) {
	t.Parallel()
	const secret, body = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", `{"id":"event_1","type":"backup.completed","timestamp":"2026-01-02T03:04:05Z","data":{"resource":{"name":"shop"}}}`
	signed := signedEvent("http://receiver.test/", secret).Header
	with := func(name, value string) http.Header {
		header := signed.Clone()
		header.Set(name, value)
		return header
	}
	if event, err := client.VerifyWebhook(secret, with("Webhook-Signature", "v1,bm9uZQ== v2,x "+signed.Get("Webhook-Signature")), []byte(body)); err != nil || event.ID != "event_1" {
		t.Errorf("%+v, %v", event, err)
	}
	for name, bad := range map[string]struct {
		header http.Header
		body   string
	}{
		"another body":       {signed, body + " "},
		"another id":         {with("Webhook-Id", "event_2"), body},
		"no id":              {with("Webhook-Id", ""), body},
		"an old time":        {with("Webhook-Timestamp", strconv.FormatInt(time.Now().Add(-time.Hour).Unix(), 10)), body},
		"a later time":       {with("Webhook-Timestamp", strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10)), body},
		"another time":       {with("Webhook-Timestamp", strconv.FormatInt(time.Now().Add(-time.Minute).Unix(), 10)), body},
		"no signature":       {with("Webhook-Signature", ""), body},
		"another version":    {with("Webhook-Signature", "v2"+signed.Get("Webhook-Signature")[2:]), body},
		"another's":          {signedEvent("http://receiver.test/", "whsec_c29tZWJvZHkgZWxzZSdzIGtleSE=").Header, body},
		"a signature cut":    {with("Webhook-Signature", signed.Get("Webhook-Signature")[:20]), body},
		"no header whatever": {http.Header{}, body},
	} {
		if _, err := client.VerifyWebhook(secret, bad.header, []byte(bad.body)); !errors.Is(err, client.ErrWebhook) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := client.VerifyWebhook("secret", signed, []byte(body)); err == nil {
		t.Error("a secret of another form verifies")
	}
}
