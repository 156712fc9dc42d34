package webhooks

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"holdfast/engine/core"
)

// Service owns webhooks and their deliveries.
type Service struct {
	core *core.Core
	// Delays are the delays between the attempts of a delivery, before jitter.
	Delays []time.Duration
	// operatorKey signs the requests of the operator's webhook.
	operatorKey []byte
	// destinations says where the requests of organizations may go.
	destinations destinations
	// secure and plain send requests to the URLs of organizations, with https and http; trusted to the operator's.
	secure, plain, trusted *http.Client

	sending sync.WaitGroup
	slots   slots
}

// DefaultDelays returns the delays between attempts: 12 attempts in 29 hours.
func DefaultDelays() []time.Duration {
	return []time.Duration{
		5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour,
		2 * time.Hour, 4 * time.Hour, 6 * time.Hour, 8 * time.Hour, 8 * time.Hour,
	}
}

// New returns the service. It reads or creates the key of the operator's webhook, if there is one.
func New(c *core.Core) (*Service, error) {
	to := destinations{private: c.Config.Webhooks.AllowPrivate}
	s := &Service{
		core: c, Delays: DefaultDelays(), destinations: to, slots: newSlots(),
		secure: newClient(to.dial), plain: newClient(to.dialPlain), trusted: newClient(nil),
	}
	if c.Config.Webhooks.OperatorURL == "" {
		return s, nil
	}
	var err error
	if s.operatorKey, err = loadKey(c.Config.Webhooks.SecretFile); err != nil {
		return nil, fmt.Errorf("open the operator's webhook: %w", err)
	}
	return s, nil
}

// Run sends deliveries until ctx ends, and waits for the attempts that are under way.
func (s *Service) Run(ctx context.Context) {
	for ctx.Err() == nil {
		changed := s.core.Meta.DeliveriesChanged() // before they are read
		next := s.sendDue(ctx)
		timer := time.NewTimer(next)
		select {
		case <-timer.C:
		case <-changed:
		case <-s.slots.freed:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	s.sending.Wait()
	for _, client := range []*http.Client{s.secure, s.plain, s.trusted} {
		client.CloseIdleConnections()
	}
}
