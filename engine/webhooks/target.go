package webhooks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// errNoReceiver means that a delivery has no receiver any more.
var errNoReceiver = errors.New("not sent")

// noReceiver returns the failure of a delivery without a receiver.
func noReceiver(why string) error { return &failure{"not sent: " + why, errNoReceiver} }

// target is where a delivery goes.
type target struct {
	url    string
	keys   [][]byte // requests are signed with each of them
	client *http.Client
}

// targetOf returns the target of a delivery.
func (s *Service) targetOf(d model.Delivery) (target, error) {
	if d.Webhook == model.OperatorWebhook {
		if s.operatorKey == nil {
			return target{}, noReceiver("the operator has no webhook")
		}
		return target{s.core.Config.Webhooks.OperatorURL, [][]byte{s.operatorKey}, s.trusted}, nil
	}
	w, err := meta.Value(s.core.Meta.View, func(tx *meta.Tx) (model.Webhook, error) { return tx.Webhooks().Get(d.Webhook) })
	if errors.Is(err, meta.ErrNotFound) || err == nil && !w.Enabled {
		return target{}, noReceiver("the webhook is disabled")
	}
	if err != nil {
		return target{}, err
	}
	t := target{url: w.URL, client: s.secure}
	if strings.HasPrefix(strings.ToLower(w.URL), "http:") {
		t.client = s.plain
	}
	sealed := [][]byte{w.Secret}
	if s.core.Clock().Before(w.PreviousUntil) {
		sealed = append(sealed, w.Previous)
	}
	for _, secret := range sealed {
		text, err := s.core.Sealer.Open(secretPurpose(w.ID), secret)
		if err != nil {
			return target{}, err
		}
		key, err := decodeSecret(text.Reveal())
		if err != nil {
			return target{}, err
		}
		t.keys = append(t.keys, key)
	}
	return t, nil
}

const (
	// attemptTimeout bounds one attempt.
	attemptTimeout = 15 * time.Second
	noAnswer       = "no answer within 15 s"
	// maxResponse is how much of a response is read, so that its connection can be used again.
	maxResponse = 4 << 10
)

// post makes one attempt and returns the status of the response, 0 for none.
func (t target) post(ctx context.Context, e model.Event, now time.Time) (status int, err error) {
	body := Payload(e)
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url, bytes.NewReader(body))
	if err != nil {
		return 0, &failure{text: "the URL is not one"}
	}
	at := strconv.FormatInt(now.Unix(), 10)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "holdfast")
	request.Header.Set("Webhook-Id", e.ID)
	request.Header.Set("Webhook-Timestamp", at)
	request.Header.Set("Webhook-Signature", signatures(t.keys, e.ID, at, body))
	response, err := t.client.Do(request)
	if err != nil {
		return 0, failed(ctx, withoutURL(err))
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusSwitchingProtocols { // whose body is the connection, which ctx does not end
		_, _ = io.CopyN(io.Discard, response.Body, maxResponse)
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return response.StatusCode, &failure{text: fmt.Sprintf("the receiver answered %d", response.StatusCode)}
	}
	return response.StatusCode, nil
}

// withoutURL removes the URL from the client's error.
func withoutURL(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}
