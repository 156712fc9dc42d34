package model

import "time"

// ImportFollow describes how a new database follows the source of its import. It contains no secret in the clear.
type ImportFollow struct {
	Publication string `json:"publication"` // of the source
	Slot        string `json:"slot"`        // at the source, which keeps WAL for it
	// SourceURL is sealed. It has the source's password, which a restart of the appliance needs; nil once the import has ended.
	SourceURL []byte `json:"source_url,omitempty"`
	// Cut means that a cutover has passed the point of no return: it is completed even without the source.
	Cut bool `json:"cut,omitempty"`

	Lag *ImportLag `json:"lag,omitempty"` // nil until it is known
	// SourcePosition is the furthest position of the source's log that was seen. SetBack means that the log was seen to end
	// before it later, so the source is not what the new database has followed.
	SourcePosition int64 `json:"source_position,omitempty"`
	SetBack        bool  `json:"set_back,omitempty"`
	// NotFollowed is what does not follow, for people.
	NotFollowed []string `json:"not_followed"`
	// StaleViews are the materialized views whose last filling failed. They are empty once the import has ended.
	StaleViews []StaleView `json:"stale_views,omitempty"`
	// Trouble is why it does not follow now, or why the last cutover was refused, and what to do; "" if all is well.
	Trouble string `json:"trouble,omitempty"`

	CutoverStartedAt *time.Time `json:"cutover_started_at,omitempty"`
	// Pause is how long nobody could write during the cutover: from the request until the new database accepted clients.
	Pause time.Duration `json:"pause,omitempty"`
}

// ImportLag is how far a new database is behind the source of its import.
type ImportLag struct {
	At       time.Time `json:"at"`
	Bytes    int64     `json:"bytes"`    // of the source's WAL that the new database has not confirmed
	Seconds  float64   `json:"seconds"`  // how long ago the source was where the new database is
	Retained int64     `json:"retained"` // bytes of WAL that the slot keeps at the source
}

// StaleView is a materialized view that keeps the rows it had, or none, because filling it fails.
type StaleView struct {
	Name    string    `json:"name"`    // with its schema
	Since   time.Time `json:"since"`   // when filling it first failed
	Message string    `json:"message"` // of the last failure
}
