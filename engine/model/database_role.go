package model

import (
	"slices"
	"strings"
	"time"
)

// RoleAccess is what a role of a database may do in it.
type RoleAccess string

// The kinds of access.
const (
	AccessRead  RoleAccess = "read"  // reads what the owner makes
	AccessWrite RoleAccess = "write" // also adds, changes and deletes rows
	AccessOwner RoleAccess = "owner" // everything that the owner may do
	// AccessCreate makes databases beside this one in its server, and may connect to it, but has no other privilege in it.
	AccessCreate RoleAccess = "create"
)

// RoleAccesses returns every kind of access.
func RoleAccesses() []RoleAccess {
	return []RoleAccess{AccessRead, AccessWrite, AccessOwner, AccessCreate}
}

// ValidateRoleAccess checks the access of a role.
func ValidateRoleAccess(field string, access RoleAccess) error {
	if !slices.Contains(RoleAccesses(), access) {
		return Invalid(field, "must be one of %s", joinNames(RoleAccesses()))
	}
	return nil
}

// MaxDatabaseRoles is how many roles a database has at most, besides its own.
const MaxDatabaseRoles = 20

// DatabaseRole is a role of a database that clients made: they may log in as it, as they may as the database's owner
// and its read-only role.
type DatabaseRole struct {
	Name   string     `json:"name"`
	Access RoleAccess `json:"access"`
	// Verifier is sealed: what the server has instead of the password, which the appliance does not keep. It is nil in
	// a copy of another database until the role gets a password; nobody can log in as it then.
	Verifier []byte `json:"verifier"`
	// ConnectionLimit is how many sessions it may have at a time, 0 for as many as the owner.
	ConnectionLimit int        `json:"connection_limit,omitempty"`
	PasswordSetAt   *time.Time `json:"password_set_at"`
	CreatedAt       time.Time  `json:"created_at"`
	UpdatedAt       time.Time  `json:"updated_at"`
}

// Tag identifies what clients change of a role with PATCH.
func (r DatabaseRole) Tag() string { return Tag([]any{r.Name, r.Access, r.ConnectionLimit}) }

// Role returns the role with a name.
func (d Database) Role(name string) (DatabaseRole, bool) {
	i := slices.IndexFunc(d.Roles, func(r DatabaseRole) bool { return r.Name == name })
	if i < 0 {
		return DatabaseRole{}, false
	}
	return d.Roles[i], true
}

// WithRole returns the database's roles with role in place of the one with its name, or added.
func (d Database) WithRole(role DatabaseRole) []DatabaseRole {
	roles := d.WithoutRole(role.Name)
	i, _ := slices.BinarySearchFunc(roles, role, func(a, b DatabaseRole) int { return strings.Compare(a.Name, b.Name) })
	return slices.Insert(roles, i, role)
}

// WithoutRole returns the database's roles without the one with a name.
func (d Database) WithoutRole(name string) []DatabaseRole {
	return slices.DeleteFunc(slices.Clone(d.Roles), func(r DatabaseRole) bool { return r.Name == name })
}

// CopiedRoles returns the roles of a copy of the database: the same, but without passwords. Nobody is told the passwords
// of a copy, and those of the original must not open it.
func (d Database) CopiedRoles(at time.Time) []DatabaseRole {
	roles := slices.Clone(d.Roles)
	for i := range roles {
		roles[i].Verifier, roles[i].PasswordSetAt, roles[i].CreatedAt, roles[i].UpdatedAt = nil, nil, at, at
	}
	return roles
}

// FirstDatabase returns the name of the database that a role with access create finds made, and that its URL names: its
// own name, or a longer one where that is taken by the tenant's database or one of PostgreSQL's.
func (d Database) FirstDatabase(role string) string {
	if role == d.Name || role == "template0" || role == "template1" {
		return withSuffix(role, "_tests")
	}
	return role
}

// ValidateRoleName checks the name of a role of a database, as that of its owner is checked.
func ValidateRoleName(field, name string) error { return ValidateDatabaseUser(field, name) }
