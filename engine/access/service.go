// Package access authenticates and authorizes: API keys, people and their sessions,
// first set-up, device logins, organizations with their plans, and projects.
//
// Random secrets are stored as SHA-256, passwords as argon2id, of which only a few are
// computed at a time (password_queue.go).
package access

import "holdfast/engine/core"

// Service carries out the operations on keys, people, organizations and projects.
type Service struct {
	core      *core.Core
	passwords *hasher
}

// New returns the service over the shared core.
func New(c *core.Core) *Service {
	return &Service{core: c, passwords: newHasher()}
}
