package web

import "holdfast/engine/model"

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
