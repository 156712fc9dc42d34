package model

import "time"

// AuditEntry is one line of an organization's audit log. Entries form a
// chain: Hash covers the entry's content and PreviousHash.
type AuditEntry struct {
	ID           string            `json:"id"`
	At           time.Time         `json:"at"`
	Organization string            `json:"organization"`
	Actor        Actor             `json:"actor"`
	Action       Action            `json:"action"`
	Resource     Resource          `json:"resource"`
	Outcome      Outcome           `json:"outcome"`
	ErrorCode    Code              `json:"error_code"`
	RequestID    string            `json:"request_id"`
	IP           string            `json:"ip"`
	UserAgent    string            `json:"user_agent"`
	Details      map[string]string `json:"details"`
	PreviousHash string            `json:"previous_hash"`
	Hash         string            `json:"hash"`
}
