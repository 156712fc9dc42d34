package model

import (
	"slices"
	"strings"
)

// Scope is one permission of a key, "area:verb".
type Scope string

// The scopes of the specification.
const (
	ScopeDatabaseCreate Scope = "database:create"
	ScopeDatabaseRead   Scope = "database:read"
	ScopeDatabaseUpdate Scope = "database:update"
	ScopeDatabaseDelete Scope = "database:delete"
	ScopeStorageCreate  Scope = "storage:create"
	ScopeStorageRead    Scope = "storage:read"
	ScopeStorageUpdate  Scope = "storage:update"
	ScopeStorageDelete  Scope = "storage:delete"
	ScopeBackupCreate   Scope = "backup:create"
	ScopeBackupRestore  Scope = "backup:restore"
	ScopeBackupDelete   Scope = "backup:delete"
	ScopeBackupDownload Scope = "backup:download"
	ScopeBackupList     Scope = "backup:list"
	ScopeAccountRead    Scope = "account:read"
	ScopeBillingRead    Scope = "billing:read"
	ScopeTeamRead       Scope = "team:read"
)

// The scopes of changes to projects, keys and people, of sessions, the trash and webhooks. Of the presets, only
// full access has them.
const (
	ScopeProjectManage Scope = "project:manage"
	ScopeKeyManage     Scope = "key:manage"
	ScopeTeamManage    Scope = "team:manage"
	ScopeSessionManage Scope = "session:manage"
	ScopeTrashManage   Scope = "trash:manage"
	ScopeTrashDelete   Scope = "trash:delete"
	ScopeWebhookManage Scope = "webhook:manage"
)

// Preset names a set of scopes that a person can choose without selecting each
// one.
type Preset string

// The presets of the specification, each a superset of the one before it.
// PresetCustom marks a key whose scopes were chosen individually.
const (
	PresetReadOnly   Preset = "read_only"
	PresetDeveloper  Preset = "developer"
	PresetFullAccess Preset = "full_access"
	PresetCustom     Preset = "custom"
)

// Scopes returns every scope: those of the specification in its order, then the others.
func Scopes() []Scope {
	return []Scope{
		ScopeDatabaseCreate, ScopeDatabaseRead, ScopeDatabaseUpdate, ScopeDatabaseDelete,
		ScopeStorageCreate, ScopeStorageRead, ScopeStorageUpdate, ScopeStorageDelete,
		ScopeBackupCreate, ScopeBackupRestore, ScopeBackupDelete, ScopeBackupDownload, ScopeBackupList,
		ScopeAccountRead, ScopeBillingRead, ScopeTeamRead,
		ScopeProjectManage, ScopeKeyManage, ScopeTeamManage, ScopeSessionManage, ScopeTrashManage, ScopeTrashDelete,
		ScopeWebhookManage,
	}
}

// Destroys reports whether an operation of the scope requires the
// dangerous-operations toggle.
func (s Scope) Destroys() bool {
	return slices.ContainsFunc(Operations(), func(o Operation) bool { return o.Scope == s && o.Destructive })
}

// Stores reports whether the scope is about buckets and objects.
func (s Scope) Stores() bool { return strings.HasPrefix(string(s), "storage:") }

// Presets returns the presets for new keys, smallest first.
func Presets() []Preset {
	return []Preset{PresetReadOnly, PresetDeveloper, PresetFullAccess}
}

// Scopes returns the scopes that p grants, nil if p is not one of Presets.
func (p Preset) Scopes() []Scope {
	readOnly := []Scope{
		ScopeDatabaseRead, ScopeStorageRead, ScopeBackupList,
		ScopeAccountRead, ScopeBillingRead, ScopeTeamRead,
	}
	switch p {
	case PresetReadOnly:
		return readOnly
	case PresetDeveloper:
		return append(readOnly,
			ScopeDatabaseCreate, ScopeDatabaseUpdate, ScopeStorageCreate, ScopeStorageUpdate,
			ScopeBackupCreate, ScopeBackupRestore, ScopeBackupDownload)
	case PresetFullAccess:
		return Scopes()
	default:
		return nil
	}
}

// Includes reports whether p grants every scope of other.
func (p Preset) Includes(other Preset) bool {
	mine := p.Scopes()
	return !slices.ContainsFunc(other.Scopes(), func(s Scope) bool { return !slices.Contains(mine, s) })
}

// ParsePreset parses the text of the input named field as a Preset.
func ParsePreset(field, text string) (Preset, error) {
	p := Preset(text)
	if !slices.Contains(Presets(), p) {
		return "", Invalid(field, "must be one of %s", joinNames(Presets()))
	}
	return p, nil
}

// ParseScopes checks the scopes given in the input named field and drops
// duplicates.
func ParseScopes(field string, texts []string) ([]Scope, error) {
	scopes := make([]Scope, 0, len(texts))
	for _, text := range texts {
		s := Scope(text)
		if !slices.Contains(Scopes(), s) {
			return nil, Invalid(field, "%q is not a scope; the scopes are %s", text, joinNames(Scopes()))
		}
		if !slices.Contains(scopes, s) {
			scopes = append(scopes, s)
		}
	}
	return scopes, nil
}

func joinNames[T ~string](names []T) string {
	texts := make([]string, len(names))
	for i, n := range names {
		texts[i] = string(n)
	}
	return strings.Join(texts, ", ")
}
