package client

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"holdfast/server/api/wire"
)

// ErrWebhook means that a request does not come from the appliance that has the secret,
// or is too old.
var ErrWebhook = errors.New("the webhook cannot be verified")

// WebhookTolerance is how far the time of a webhook's request may be from now.
const WebhookTolerance = 5 * time.Minute

// VerifyWebhook verifies a request of a webhook by its secret, and returns the event in
// the body, which must be exactly what was received. An event may be delivered more than
// once: its ID is always the same.
func VerifyWebhook(secret string, header http.Header, body []byte) (wire.Event, error) {
	encoded, found := strings.CutPrefix(secret, "whsec_")
	key, err := base64.StdEncoding.DecodeString(encoded)
	if !found || err != nil || len(key) == 0 {
		return wire.Event{}, errors.New("the secret of a webhook is whsec_ and base64")
	}
	id, at := header.Get("Webhook-Id"), header.Get("Webhook-Timestamp")
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil || id == "" || time.Since(time.Unix(seconds, 0)).Abs() > WebhookTolerance {
		return wire.Event{}, fmt.Errorf("%w: its time or id is missing, or the time is too far from now", ErrWebhook)
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + at + "."))
	mac.Write(body)
	if !signed(header.Get("Webhook-Signature"), mac.Sum(nil)) {
		return wire.Event{}, fmt.Errorf("%w: no signature matches", ErrWebhook)
	}
	var event wire.Event
	if err := json.Unmarshal(body, &event); err != nil {
		return wire.Event{}, fmt.Errorf("read the event of a webhook: %w", err)
	}
	return event, nil
}

// signed reports whether one of the signatures of a header is the expected one.
func signed(signatures string, expected []byte) bool {
	for one := range strings.FieldsSeq(signatures) {
		text, version1 := strings.CutPrefix(one, "v1,")
		signature, err := base64.StdEncoding.DecodeString(text)
		if version1 && err == nil && hmac.Equal(signature, expected) {
			return true
		}
	}
	return false
}
