package web

import (
	"slices"

	"holdfast/engine/model"
)

// scopeText describes what a scope allows: in full, and in short for lists
// where the area is named already.
type scopeText struct {
	scope        model.Scope
	area         string
	words, short string
}

// scopeTexts has every scope, by area in display order.
func scopeTexts() []scopeText {
	return []scopeText{
		{model.ScopeDatabaseRead, "Databases", "See databases, and read the data in them", "see them and read their data"},
		{model.ScopeDatabaseCreate, "Databases", "Create databases", "create"},
		{model.ScopeDatabaseUpdate, "Databases", "Change the data in databases, restart them, rotate passwords, edit who may connect", "change their data, passwords and who may connect"},
		{model.ScopeDatabaseDelete, "Databases", "Delete databases", "delete"},
		{model.ScopeStorageRead, "Files", "See buckets, and download the files in them", "see and download"},
		{model.ScopeStorageCreate, "Files", "Create buckets and upload files", "create"},
		{model.ScopeStorageUpdate, "Files", "Change buckets", "change buckets"},
		{model.ScopeStorageDelete, "Files", "Delete files and buckets", "delete"},
		{model.ScopeBackupList, "Backups", "See backups and what can be recovered", "see"},
		{model.ScopeBackupCreate, "Backups", "Make backups", "create"},
		{model.ScopeBackupRestore, "Backups", "Restore databases to an earlier state", "restore"},
		{model.ScopeBackupDownload, "Backups", "Download exports of databases", "download exports"},
		{model.ScopeBackupDelete, "Backups", "Delete backups", "delete"},
		{model.ScopeAccountRead, "Account", "See usage, the list of API keys and the audit log", "see usage, keys and the audit log"},
		{model.ScopeBillingRead, "Account", "See the plan", "the plan"},
		{model.ScopeTeamRead, "Account", "See who is in the organization", "who is in the organization"},
		{model.ScopeProjectManage, "Account", "Create, rename and delete projects", "manage projects"},
		{model.ScopeTeamManage, "Account", "Invite viewers, make links for their passwords, and remove their accounts", "manage viewers"},
		{model.ScopeSessionManage, "Account", "See where people are signed in, and sign viewers out", "see sessions and sign viewers out"},
		{model.ScopeTrashManage, "Trash", "See what was deleted, and bring it back", "see and restore"},
		{model.ScopeTrashDelete, "Trash", "Remove what was deleted for good", "remove for good"},
		{model.ScopeKeyManage, "Account", "Make API keys that may do no more than this one, change and revoke keys", "manage keys"},
		{model.ScopeWebhookManage, "Account", "Create, test, change and delete webhooks, and send deliveries again", "manage webhooks"},
	}
}

// scopeWords describes what a scope allows.
func scopeWords(s model.Scope) string {
	texts := scopeTexts()
	if i := slices.IndexFunc(texts, func(t scopeText) bool { return t.scope == s }); i >= 0 {
		return texts[i].words
	}
	return string(s)
}

// power describes what a preset allows in one area.
type power struct{ Area, Text string }

// powersOf summarizes what a preset grants.
func powersOf(p model.Preset) (powers []power) {
	granted := p.Scopes()
	for _, t := range scopeTexts() {
		switch last := len(powers) - 1; {
		case !slices.Contains(granted, t.scope):
		case last >= 0 && powers[last].Area == t.area:
			powers[last].Text += ", " + t.short
		default:
			powers = append(powers, power{t.area, t.short})
		}
	}
	return powers
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
