package model

import "time"

// The lifetime of a session: it ends after SessionIdle without use, and after
// SessionLife in any case.
const (
	SessionIdle = 7 * 24 * time.Hour
	SessionLife = 30 * 24 * time.Hour
)

// Too many wrong device codes lock a session's device page.
const (
	MaxWrongCodes = 5
	CodeLockTime  = time.Minute
)

// Session is a person's sign-in in one browser.
type Session struct {
	TokenHash   string     `json:"token_hash"` // SHA-256 of the cookie's value, in hex
	User        string     `json:"user"`
	IP          string     `json:"ip"`
	UserAgent   string     `json:"user_agent"`
	CreatedAt   time.Time  `json:"created_at"`
	LastSeenAt  time.Time  `json:"last_seen_at"`
	WrongCodes  int        `json:"wrong_codes"` // consecutive wrong device codes
	LockedUntil *time.Time `json:"locked_until"`
}

// ID identifies the session for people. It is a part of the hash, which is of no use to
// whoever wants to sign in.
func (s *Session) ID() string {
	const half = 32
	return ResourceSession.Prefix() + s.TokenHash[:min(half, len(s.TokenHash))]
}

// Usable reports whether the session is unexpired at now.
func (s *Session) Usable(now time.Time) bool { return now.Before(s.Ends()) }

// Ends returns when the session ends without further use.
func (s *Session) Ends() time.Time {
	idle, life := s.LastSeenAt.Add(SessionIdle), s.CreatedAt.Add(SessionLife)
	if idle.Before(life) {
		return idle
	}
	return life
}

// Locked reports whether wrong codes lock the session's device page.
func (s *Session) Locked(now time.Time) bool {
	return s.LockedUntil != nil && now.Before(*s.LockedUntil)
}

// WrongCode counts a wrong device code; MaxWrongCodes in a row lock the page.
func (s *Session) WrongCode(now time.Time) {
	s.WrongCodes++
	if s.WrongCodes >= MaxWrongCodes {
		until := now.Add(CodeLockTime)
		s.WrongCodes, s.LockedUntil = 0, &until
	}
}
