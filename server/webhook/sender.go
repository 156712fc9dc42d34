package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"holdfast/engine/model"
)

const (
	// maxWaiting is the maximum number of waiting messages; beyond that the oldest is dropped.
	maxWaiting = 100
	// sendTimeout bounds one attempt.
	sendTimeout = 10 * time.Second
)

// Options are the options of a Sender.
type Options struct {
	// URL is the URL for messages. It may contain a secret of the receiver and is never logged.
	URL string
	// SecretFile has the signing key; it is created if it does not exist.
	SecretFile string
	Log        *slog.Logger
	// Retries are the delays between attempts; nil means DefaultRetries.
	Retries []time.Duration
}

// DefaultRetries returns the delays of Standard Webhooks' example schedule.
func DefaultRetries() []time.Duration {
	return []time.Duration{5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour}
}

// Sender posts messages. The caller must close it.
type Sender struct {
	opts   Options
	key    []byte
	client *http.Client
	cancel context.CancelFunc
	done   chan struct{}
	wake   chan struct{}

	mu      sync.Mutex
	waiting []*message // oldest first
}

// message is an event to be delivered.
type message struct {
	id       string
	body     []byte
	attempts int
	due      time.Time
}

// Open reads or creates the secret, and starts sending.
func Open(opts Options) (*Sender, error) {
	key, err := loadSecret(opts.SecretFile)
	if err != nil {
		return nil, fmt.Errorf("open webhook: %w", err)
	}
	if opts.Retries == nil {
		opts.Retries = DefaultRetries()
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Sender{
		opts: opts, key: key, cancel: cancel, done: make(chan struct{}), wake: make(chan struct{}, 1),
		client: &http.Client{
			Timeout: sendTimeout,
			// A redirect would send the message somewhere the operator did not specify.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	go s.run(ctx)
	return s, nil
}

// Close stops sending; waiting messages are lost. Close is idempotent.
func (s *Sender) Close() {
	s.cancel()
	<-s.done
	s.client.CloseIdleConnections()
}

// payload is a message's body.
type payload struct {
	Type      model.EventType `json:"type"`
	Timestamp time.Time       `json:"timestamp"`
	Data      data            `json:"data"`
}

type data struct {
	Organization *string         `json:"organization"`
	Resource     *model.Resource `json:"resource"`
	Message      string          `json:"message"`
}

// Event queues a message if the event is alarming. It does not block.
func (s *Sender) Event(event model.Event) {
	if !event.Type.Alarming() {
		return
	}
	p := payload{Type: event.Type, Timestamp: event.At, Data: data{Message: event.Message}}
	if event.Organization != "" {
		p.Data.Organization = &event.Organization
	}
	if event.Resource.Type != model.ResourceNone {
		p.Data.Resource = &event.Resource
	}
	body, err := json.Marshal(p)
	if err != nil {
		s.opts.Log.Error("encode webhook", "error", err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = append(s.waiting, &message{id: event.ID, body: body, due: time.Now()})
	if len(s.waiting) > maxWaiting {
		s.opts.Log.Warn("too many webhooks wait: the oldest is dropped", "id", s.waiting[0].id)
		s.waiting = slices.Delete(s.waiting, 0, 1)
	}
	select {
	case s.wake <- struct{}{}:
	default: // a wake-up is already pending
	}
}

func (s *Sender) run(ctx context.Context) {
	defer close(s.done)
	for ctx.Err() == nil {
		m, wait := s.next()
		if m != nil {
			s.try(ctx, m)
			continue
		}
		select {
		case <-time.After(wait):
		case <-s.wake:
		case <-ctx.Done():
		}
	}
}

// next returns a message that is due, or the time until the next one.
func (s *Sender) next() (*message, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wait := time.Hour
	for _, m := range s.waiting {
		left := time.Until(m.due)
		if left <= 0 {
			return m, 0
		}
		wait = min(wait, left)
	}
	return nil, wait
}

// try makes one attempt. A failed message waits for the next.
func (s *Sender) try(ctx context.Context, m *message) {
	err := s.post(ctx, m)
	if ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil && m.attempts < len(s.opts.Retries) {
		s.opts.Log.Warn("deliver webhook", "id", m.id, "next_in", s.opts.Retries[m.attempts], "error", err)
		m.due = time.Now().Add(s.opts.Retries[m.attempts])
		m.attempts++
		return
	}
	if err != nil {
		s.opts.Log.Error("a webhook could not be delivered", "id", m.id, "attempts", m.attempts+1, "error", err)
	}
	s.waiting = slices.DeleteFunc(s.waiting, func(other *message) bool { return other == m })
}

func (s *Sender) post(ctx context.Context, m *message) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.opts.URL, bytes.NewReader(m.body))
	if err != nil {
		return errors.New("the URL is not one")
	}
	at := strconv.FormatInt(time.Now().Unix(), 10)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "holdfast")
	request.Header.Set("webhook-id", m.id)
	request.Header.Set("webhook-timestamp", at)
	request.Header.Set("webhook-signature", s.sign(m.id, at, m.body))
	answer, err := s.client.Do(request)
	if err != nil {
		return withoutURL(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		return fmt.Errorf("the receiver answered %s", answer.Status)
	}
	return nil
}

func (s *Sender) sign(id, at string, body []byte) string {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(id + "." + at + "."))
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// withoutURL removes the URL from the client's error.
func withoutURL(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}
