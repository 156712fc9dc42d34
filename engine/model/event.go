package model

import "time"

// EventType names an event. Webhooks carry the same texts.
type EventType string

// The events that an operator may want to hear about.
const (
	EventBackupCompleted    EventType = "backup.completed"
	EventBackupFailed       EventType = "backup.failed"
	EventDatabaseFailed     EventType = "database.failed"
	EventDatabaseRecovered  EventType = "database.recovered"
	EventDiskNearlyFull     EventType = "disk.nearly_full"
	EventRecoveryGap        EventType = "recovery.gap"
	EventVerificationFailed EventType = "backup.verification_failed"
	EventOffsiteBehind      EventType = "offsite.behind"
	EventOffsiteDamaged     EventType = "offsite.damaged"
	EventOffsiteFenced      EventType = "offsite.fenced"
	EventOffsiteRecovered   EventType = "offsite.recovered"
)

// Alarming reports whether the operator should be notified at once.
func (t EventType) Alarming() bool {
	return t == EventBackupFailed || t == EventDatabaseFailed || t == EventDiskNearlyFull || t == EventRecoveryGap ||
		t == EventVerificationFailed || t == EventOffsiteBehind || t == EventOffsiteDamaged || t == EventOffsiteFenced
}

// Event is something that happened in the appliance without a request.
type Event struct {
	ID           string
	Type         EventType
	At           time.Time
	Organization string // id, "" for the machine as a whole
	Resource     Resource
	// Message describes the event for a person; it contains no secret.
	Message string
	// Took is the duration of a backup.
	Took time.Duration
}
