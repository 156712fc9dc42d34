package web

import (
	"slices"
	"strings"

	"holdfast/engine/model"
)

// scopeWords says what a scope lets a key do.
func scopeWords(s model.Scope) string {
	switch s {
	case model.ScopeDatabaseCreate:
		return "Create databases"
	case model.ScopeDatabaseRead:
		return "See databases, and read the data in them"
	case model.ScopeDatabaseUpdate:
		return "Change the data in databases, restart them, rotate passwords, edit who may connect"
	case model.ScopeDatabaseDelete:
		return "Delete databases"
	case model.ScopeStorageCreate:
		return "Create buckets and upload files"
	case model.ScopeStorageRead:
		return "See buckets, and download the files in them"
	case model.ScopeStorageUpdate:
		return "Change buckets"
	case model.ScopeStorageDelete:
		return "Delete files and buckets"
	case model.ScopeBackupCreate:
		return "Make backups"
	case model.ScopeBackupRestore:
		return "Restore databases to an earlier state"
	case model.ScopeBackupDelete:
		return "Delete backups"
	case model.ScopeBackupDownload:
		return "Download exports of databases"
	case model.ScopeBackupList:
		return "See backups and what can be recovered"
	case model.ScopeAccountRead:
		return "See usage, the list of API keys and the audit log"
	case model.ScopeBillingRead:
		return "See the plan"
	case model.ScopeTeamRead:
		return "See who is in the organization"
	default:
		return string(s)
	}
}

// power is what a preset lets a key do with one kind of thing.
type power struct{ Area, Text string }

// powersOf says in a few lines what a preset grants. Each scope has its part,
// so that none is granted and not named.
func powersOf(p model.Preset) []power {
	var powers []power
	granted := p.Scopes()
	for _, area := range []struct {
		name   string
		scopes []model.Scope
	}{
		{"Databases", []model.Scope{model.ScopeDatabaseRead, model.ScopeDatabaseCreate, model.ScopeDatabaseUpdate, model.ScopeDatabaseDelete}},
		{"Files", []model.Scope{model.ScopeStorageRead, model.ScopeStorageCreate, model.ScopeStorageUpdate, model.ScopeStorageDelete}},
		{"Backups", []model.Scope{model.ScopeBackupList, model.ScopeBackupCreate, model.ScopeBackupRestore, model.ScopeBackupDownload, model.ScopeBackupDelete}},
		{"Account", []model.Scope{model.ScopeAccountRead, model.ScopeBillingRead, model.ScopeTeamRead}},
	} {
		var parts []string
		for _, s := range area.scopes {
			if slices.Contains(granted, s) {
				parts = append(parts, scopeShort(s))
			}
		}
		if len(parts) > 0 {
			powers = append(powers, power{area.name, strings.Join(parts, ", ")})
		}
	}
	return powers
}

// scopeShort is scopeWords for where the kind of thing is said already.
func scopeShort(s model.Scope) string {
	switch s {
	case model.ScopeDatabaseRead:
		return "see them and read their data"
	case model.ScopeDatabaseCreate, model.ScopeStorageCreate, model.ScopeBackupCreate:
		return "create"
	case model.ScopeDatabaseUpdate:
		return "change their data, passwords and who may connect"
	case model.ScopeStorageRead:
		return "see and download"
	case model.ScopeStorageUpdate:
		return "change buckets"
	case model.ScopeBackupList:
		return "see"
	case model.ScopeBackupRestore:
		return "restore"
	case model.ScopeBackupDownload:
		return "download exports"
	case model.ScopeDatabaseDelete, model.ScopeStorageDelete, model.ScopeBackupDelete:
		return "delete"
	case model.ScopeAccountRead:
		return "see usage, keys and the audit log"
	case model.ScopeBillingRead:
		return "the plan"
	case model.ScopeTeamRead:
		return "who is in the organization"
	default:
		return string(s)
	}
}

func presetName(p model.Preset) string {
	switch p {
	case model.PresetReadOnly:
		return "Read only"
	case model.PresetDeveloper:
		return "Developer"
	case model.PresetFullAccess:
		return "Full access"
	default:
		return "Custom"
	}
}

func presetHint(p model.Preset) string {
	switch p {
	case model.PresetReadOnly:
		return "Looks at everything, the data included. Changes nothing."
	case model.PresetDeveloper:
		return "Creates, changes, backs up and restores. Deletes nothing."
	case model.PresetFullAccess:
		return "Everything. Deleting needs one more tick below."
	default:
		return "Exactly the permissions you tick."
	}
}
