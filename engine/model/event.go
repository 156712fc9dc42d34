package model

import (
	"slices"
	"strings"
	"time"
)

// EventType names an event, "area.what".
type EventType string

// The events of an organization, which its webhooks and streams carry.
const (
	EventBackupStarted      EventType = "backup.started"
	EventBackupCompleted    EventType = "backup.completed"
	EventBackupFailed       EventType = "backup.failed"
	EventBackupCancelled    EventType = "backup.cancelled"
	EventBackupInterrupted  EventType = "backup.interrupted"
	EventBackupVerified     EventType = "backup.verified"
	EventVerificationFailed EventType = "backup.verification_failed"
	EventBackupDeleted      EventType = "backup.deleted"

	EventRestoreStarted   EventType = "restore.started"
	EventRestoreCompleted EventType = "restore.completed"
	EventRestoreFailed    EventType = "restore.failed"
	EventRestoreCancelled EventType = "restore.cancelled"

	EventUpgradeStarted   EventType = "upgrade.started"
	EventUpgradeCompleted EventType = "upgrade.completed"
	EventUpgradeFailed    EventType = "upgrade.failed"
	EventUpgradeCancelled EventType = "upgrade.cancelled"

	EventImportStarted   EventType = "import.started"
	EventImportCompleted EventType = "import.completed"
	EventImportFailed    EventType = "import.failed"
	EventImportCancelled EventType = "import.cancelled"

	EventExportStarted   EventType = "export.started"
	EventExportCompleted EventType = "export.completed"
	EventExportFailed    EventType = "export.failed"
	EventExportCancelled EventType = "export.cancelled"

	EventDatabaseCreated         EventType = "database.created"
	EventDatabaseUpdated         EventType = "database.updated"
	EventDatabasePasswordRotated EventType = "database.password_rotated"
	EventDatabaseRestarted       EventType = "database.restarted"
	EventDatabaseRestartFailed   EventType = "database.restart_failed"
	EventDatabaseDeleted         EventType = "database.deleted"
	EventDatabaseUndeleted       EventType = "database.undeleted"
	EventDatabasePurged          EventType = "database.purged"
	EventDatabaseFailed          EventType = "database.failed"
	EventDatabaseRecovered       EventType = "database.recovered"
	EventReplicationSlotLost     EventType = "database.replication_slot_lost"

	EventRecoveryGap       EventType = "recovery.gap"
	EventRecoveryCompleted EventType = "recovery.completed"

	EventKeyCreated EventType = "key.created"
	EventKeyUpdated EventType = "key.updated"
	EventKeyRevoked EventType = "key.revoked"
	EventKeyExpired EventType = "key.expired"

	EventWebhookPing EventType = "webhook.ping"
)

// The events of the machine, which only the operator receives.
const (
	EventDiskNearlyFull   EventType = "disk.nearly_full"
	EventOffsiteBehind    EventType = "offsite.behind"
	EventOffsiteDamaged   EventType = "offsite.damaged"
	EventOffsiteFenced    EventType = "offsite.fenced"
	EventOffsiteRecovered EventType = "offsite.recovered"
)

// EventTypes returns every event of an organization.
func EventTypes() []EventType {
	return []EventType{
		EventBackupStarted, EventBackupCompleted, EventBackupFailed, EventBackupCancelled, EventBackupInterrupted,
		EventBackupVerified, EventVerificationFailed, EventBackupDeleted,
		EventRestoreStarted, EventRestoreCompleted, EventRestoreFailed, EventRestoreCancelled,
		EventUpgradeStarted, EventUpgradeCompleted, EventUpgradeFailed, EventUpgradeCancelled,
		EventImportStarted, EventImportCompleted, EventImportFailed, EventImportCancelled,
		EventExportStarted, EventExportCompleted, EventExportFailed, EventExportCancelled,
		EventDatabaseCreated, EventDatabaseUpdated, EventDatabasePasswordRotated, EventDatabaseRestarted, EventDatabaseRestartFailed,
		EventDatabaseDeleted, EventDatabaseUndeleted, EventDatabasePurged, EventDatabaseFailed, EventDatabaseRecovered, EventReplicationSlotLost,
		EventRecoveryGap, EventRecoveryCompleted,
		EventKeyCreated, EventKeyUpdated, EventKeyRevoked, EventKeyExpired,
		EventWebhookPing,
	}
}

// EventAreas returns the areas of the events that a webhook can select, such as "backup".
func EventAreas() []string {
	var areas []string
	for _, t := range EventTypes() {
		if area := t.Area(); area != EventWebhookPing.Area() && !slices.Contains(areas, area) {
			areas = append(areas, area)
		}
	}
	return areas
}

// Area returns the part of the type before the dot.
func (t EventType) Area() string {
	area, _, _ := strings.Cut(string(t), ".")
	return area
}

// Scope returns the scope that a key needs to see events of the type.
func (t EventType) Scope() Scope {
	switch t.Area() {
	case "backup", "recovery":
		return ScopeBackupList
	case "key":
		return ScopeAccountRead
	case "webhook":
		return ScopeWebhookManage
	default:
		return ScopeDatabaseRead
	}
}

// EventScopes returns the scopes that events need.
func EventScopes() []Scope { return []Scope{ScopeDatabaseRead, ScopeBackupList, ScopeAccountRead} }

// ScopeSelected returns the scope that the events of a selector need, "" for "*", which selects those that may be seen.
func ScopeSelected(selector string) Scope {
	if selector == "*" {
		return ""
	}
	return EventType(selector).Scope()
}

// SelectedBy reports whether one of the selectors selects events of the type: see ValidateEventFilter.
func (t EventType) SelectedBy(selectors []string) bool {
	return slices.ContainsFunc(selectors, func(s string) bool { return s == "*" || s == string(t) || s == t.Area()+".*" })
}

// Alarming reports whether the operator should be notified at once.
func (t EventType) Alarming() bool {
	return t == EventBackupFailed || t == EventDatabaseFailed || t == EventDiskNearlyFull || t == EventRecoveryGap || t == EventReplicationSlotLost ||
		t == EventVerificationFailed || t == EventOffsiteBehind || t == EventOffsiteDamaged || t == EventOffsiteFenced
}

// MaxEventMessage is the maximum length of an event's message, in bytes.
const MaxEventMessage = 1000

// Event is something that happened, recorded in the transaction of the change that it is
// about.
type Event struct {
	ID           string    `json:"id"`
	Type         EventType `json:"type"`
	At           time.Time `json:"at"`
	Organization string    `json:"organization"` // id, "" for the machine as a whole
	Resource     Resource  `json:"resource"`
	// Database and Operation are ids, "" for none.
	Database  string `json:"database,omitempty"`
	Operation string `json:"operation,omitempty"`
	// Message describes the event for a person; it contains no secret.
	Message string `json:"message"`
	// Took is the duration of a backup.
	Took time.Duration `json:"took,omitempty"`
	// Webhook is the only webhook that receives the event, "" for all that select it.
	Webhook string `json:"webhook,omitempty"`
}
