package model

import (
	"net/mail"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Role determines what a person may do in the organization.
type Role string

// The roles.
const (
	RoleOwner  Role = "owner"
	RoleAdmin  Role = "admin"
	RoleViewer Role = "viewer"
)

// Roles returns every role, most powerful first.
func Roles() []Role { return []Role{RoleOwner, RoleAdmin, RoleViewer} }

// ParseRole parses the text of the input named field as a Role.
func ParseRole(field, text string) (Role, error) {
	if r := Role(text); slices.Contains(Roles(), r) {
		return r, nil
	}
	return "", Invalid(field, "must be one of %s", joinNames(Roles()))
}

// AtLeast reports whether r may do everything that other may. An invalid role may
// do nothing.
func (r Role) AtLeast(other Role) bool {
	mine, others := slices.Index(Roles(), r), slices.Index(Roles(), other)
	return mine >= 0 && mine <= others
}

// Holds reports whether the role includes scope.
func (r Role) Holds(scope Scope) bool {
	if r.AtLeast(RoleAdmin) {
		return true
	}
	return r == RoleViewer && slices.Contains(PresetReadOnly.Scopes(), scope)
}

// Allows returns an error that says why the role does not permit the operation,
// or nil if it does.
func (r Role) Allows(op Operation) error {
	if op.Scope != "" && !r.Holds(op.Scope) || op.Role != "" && !r.AtLeast(op.Role) {
		return Errorf(CodeForbidden, "you are signed in as %s, which does not allow this; an owner can give you another role", r)
	}
	return nil
}

// MayGrant reports whether the role includes every scope of p, so that the person
// may grant p to a tool.
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

// MaxPeople is how many people an organization can have, with those who have not accepted their invitation.
const MaxPeople = 1000

// Tag identifies what people change of the account.
func (u User) Tag() string { return Tag(u.Role) }

// SetupLink is a one-time link for setting a password.
type SetupLink struct {
	TokenHash    []byte `json:"token_hash"` // SHA-256 of the token in the link
	Organization string `json:"organization"`
	// User is the person whose password it sets; "" creates a new owner account.
	User string `json:"user"`
	// Maker is the id of the person or key that made the link; it is valid only while
	// its maker may make it. "" means the operator or the appliance.
	Maker     string    `json:"maker"`
	ExpiresAt time.Time `json:"expires_at"`
}

// NormalizeEmail checks an e-mail address and returns the form used for storage
// and comparison.
func NormalizeEmail(field, email string) (string, error) {
	email = strings.TrimSpace(email)
	addr, err := mail.ParseAddress(email)
	normal := strings.ToLower(email)
	// Invisible characters are refused so that no two addresses look the same.
	invisible := func(r rune) bool { return !unicode.IsPrint(r) }
	if err != nil || addr.Address != email || len(normal) > 254 || strings.ContainsFunc(normal, invisible) {
		return "", Invalid(field, "must be an e-mail address such as ada@example.com")
	}
	return normal, nil
}
