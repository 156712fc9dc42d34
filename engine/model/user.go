package model

import (
	"net/mail"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Role is what a person may do in the organization.
type Role string

// The roles.
const (
	RoleOwner  Role = "owner"
	RoleAdmin  Role = "admin"
	RoleViewer Role = "viewer"
)

// User is a person who can sign in to the console.
type User struct {
	ID           string    `json:"id"`
	Organization string    `json:"organization"`
	Email        string    `json:"email"`
	Role         Role      `json:"role"`
	PasswordHash string    `json:"password_hash"` // argon2id, PHC string format
	CreatedAt    time.Time `json:"created_at"`
}

// SetupLink is the one-time invitation to make an organization's first owner.
type SetupLink struct {
	TokenHash    []byte    `json:"token_hash"` // SHA-256 of the token in the link
	Organization string    `json:"organization"`
	ExpiresAt    time.Time `json:"expires_at"`
}

// The bounds of a person's password, in characters.
const (
	MinUserPassword = 10
	MaxUserPassword = 256
)

// NormalizeEmail checks an e-mail address and returns it in the form it is
// stored and compared in.
func NormalizeEmail(field, email string) (string, error) {
	email = strings.TrimSpace(email)
	addr, err := mail.ParseAddress(email)
	normal := strings.ToLower(email)
	// Two addresses must not look the same, hence nothing invisible.
	invisible := func(r rune) bool { return !unicode.IsPrint(r) }
	if err != nil || addr.Address != email || len(normal) > 254 || strings.ContainsFunc(normal, invisible) {
		return "", Invalid(field, "must be an e-mail address such as ada@example.com")
	}
	return normal, nil
}

// ValidateUserPassword checks the length of a person's password.
func ValidateUserPassword(field string, password Secret) error {
	n := utf8.RuneCountInString(password.Reveal())
	if n < MinUserPassword || n > MaxUserPassword {
		return Invalid(field, "must have %d to %d characters", MinUserPassword, MaxUserPassword)
	}
	return nil
}
