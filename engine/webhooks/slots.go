package webhooks

import (
	"sync"

	"holdfast/engine/core"
	"holdfast/engine/model"
)

// The bounds of concurrent attempts: of a webhook, of an organization, and in all. While half of all are taken, each
// organization may have one, so that slow receivers of some do not delay the others.
const (
	slotsOfWebhook      = 2
	slotsOfOrganization = 8
	slotsInAll          = 256
)

// slots counts the attempts that are under way.
type slots struct {
	freed core.WakeUps

	mu           sync.Mutex
	deliveries   map[string]bool
	webhook      map[string]int
	organization map[string]int
}

func newSlots() slots {
	return slots{freed: core.NewWakeUps(), deliveries: map[string]bool{}, webhook: map[string]int{}, organization: map[string]int{}}
}

// free returns how many attempts of a webhook may begin.
func (s *slots) free(webhook string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(0, min(slotsOfWebhook-s.webhook[webhook], slotsInAll-len(s.deliveries)))
}

// busy reports whether a delivery is under way.
func (s *slots) busy(delivery string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.deliveries[delivery]
}

// take begins an attempt, unless there is no slot for it.
func (s *slots) take(d model.Delivery) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	most := slotsOfOrganization
	if len(s.deliveries) >= slotsInAll/2 {
		most = 1
	}
	if s.deliveries[d.ID] || len(s.deliveries) >= slotsInAll || s.webhook[d.Webhook] >= slotsOfWebhook || s.organization[d.Organization] >= most {
		return false
	}
	s.deliveries[d.ID] = true
	s.webhook[d.Webhook]++
	s.organization[d.Organization]++
	return true
}

// release ends an attempt.
func (s *slots) release(d model.Delivery) {
	s.mu.Lock()
	delete(s.deliveries, d.ID)
	for key, count := range map[string]map[string]int{d.Webhook: s.webhook, d.Organization: s.organization} {
		if count[key]--; count[key] == 0 {
			delete(count, key)
		}
	}
	s.mu.Unlock()
	s.freed.Wake()
}
