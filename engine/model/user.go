package model

import (
	"net/mail"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Role is what a person may do in the organization.
type Role string

// The roles.
const (
	RoleOwner  Role = "owner"
	RoleAdmin  Role = "admin"
	RoleViewer Role = "viewer"
)

// Roles returns every role, the most powerful first.
func Roles() []Role { return []Role{RoleOwner, RoleAdmin, RoleViewer} }

// ParseRole turns the text of the input called field into a Role.
func ParseRole(field, text string) (Role, error) {
	if r := Role(text); slices.Contains(Roles(), r) {
		return r, nil
	}
	return "", Invalid(field, "must be one of %s", joinNames(Roles()))
}

// AtLeast reports whether r may do all that other may. What is no role may do
// nothing.
func (r Role) AtLeast(other Role) bool {
	mine, others := slices.Index(Roles(), r), slices.Index(Roles(), other)
	return mine >= 0 && mine <= others
}

// Holds reports whether a person with the role may do what scope names.
func (r Role) Holds(scope Scope) bool {
	if r.AtLeast(RoleAdmin) {
		return true
	}
	return r == RoleViewer && slices.Contains(PresetReadOnly.Scopes(), scope)
}

// Allows returns why a person with the role may not do what an operation does,
// nil where that is allowed.
func (r Role) Allows(op Operation) error {
	if op.Scope != "" && !r.Holds(op.Scope) || op.Role != "" && !r.AtLeast(op.Role) {
		return Errorf(CodeForbidden, "you are signed in as %s, which does not allow this; an owner can give you another role", r)
	}
	return nil
}

// MayGrant reports whether a person with the role holds all that p grants,
// and so may let a tool have it.
func (r Role) MayGrant(p Preset) bool {
	return !slices.ContainsFunc(p.Scopes(), func(s Scope) bool { return !r.Holds(s) })
}

// User is a person who can sign in to the console.
type User struct {
	ID           string     `json:"id"`
	Organization string     `json:"organization"`
	Email        string     `json:"email"`
	Role         Role       `json:"role"`
	PasswordHash string     `json:"password_hash"` // argon2id, PHC string format; "" until the first is set
	CreatedAt    time.Time  `json:"created_at"`
	LastSignInAt *time.Time `json:"last_sign_in_at"`
}

// SetupLink is a one-time link with which a person sets a password.
type SetupLink struct {
	TokenHash    []byte `json:"token_hash"` // SHA-256 of the token in the link
	Organization string `json:"organization"`
	// User is whose password it sets; "" makes a new owner's account.
	User string `json:"user"`
	// Maker is the person who made it, without whose right to do so it is not
	// in force; "" is the operator or the appliance.
	Maker     string    `json:"maker"`
	ExpiresAt time.Time `json:"expires_at"`
}

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
