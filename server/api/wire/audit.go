package wire

import "time"

// Actor is who made a request; a request without a valid key has no id.
type Actor struct {
	Type ActorType `json:"type"`
	ID   *string   `json:"id"`
	Name *string   `json:"name"`
}

// Resource is what a request was about.
type Resource struct {
	Type string  `json:"type"`
	ID   *string `json:"id"`
	Name *string `json:"name"`
}

// AuditEntry is an entry of the audit log.
type AuditEntry struct {
	ID           string            `json:"id"`
	At           time.Time         `json:"at"`
	Actor        Actor             `json:"actor"`
	Action       string            `json:"action" example:"database.create"`
	Resource     *Resource         `json:"resource"`
	Outcome      AuditOutcome      `json:"outcome"`
	ErrorCode    *ErrorCode        `json:"error_code"`
	RequestID    *string           `json:"request_id"`
	IP           *string           `json:"ip"`
	UserAgent    *string           `json:"user_agent"`
	Details      map[string]string `json:"details"`
	PreviousHash string            `json:"previous_hash"`
	Hash         string            `json:"hash" doc:"Of the entry and previous_hash, so that no entry can be changed or removed unseen."`
}

// AuditExportEnd is the last line of an export of the audit log. An export without it was cut off.
type AuditExportEnd struct {
	Complete bool `json:"complete" doc:"true."`
	Entries  int  `json:"entries" doc:"How many lines came before this one."`
}
