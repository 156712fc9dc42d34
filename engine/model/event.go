package model

import "time"

// EventType names what happened. The texts are those webhooks carry.
type EventType string

// What the operator may want to be told of.
const (
	EventBackupCompleted    EventType = "backup.completed"
	EventBackupFailed       EventType = "backup.failed"
	EventDatabaseFailed     EventType = "database.failed"
	EventDatabaseRecovered  EventType = "database.recovered"
	EventDiskNearlyFull     EventType = "disk.nearly_full"
	EventRecoveryGap        EventType = "recovery.gap"
	EventVerificationFailed EventType = "backup.verification_failed"
)

// Alarming reports whether the operator should be told at once.
func (t EventType) Alarming() bool {
	return t == EventBackupFailed || t == EventDatabaseFailed || t == EventDiskNearlyFull || t == EventRecoveryGap ||
		t == EventVerificationFailed
}

// Event is something that happened to the appliance by itself.
type Event struct {
	ID           string
	Type         EventType
	At           time.Time
	Organization string // id, "" for the machine as a whole
	Resource     Resource
	// Message says for a person what happened; it holds no secret.
	Message string
	// Took is how long a backup did.
	Took time.Duration
}
