package model

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// Severity ranks recommendations.
type Severity string

// The severities, most severe first.
const (
	SeverityCritical Severity = "critical"
	SeverityWarning  Severity = "warning"
	SeverityInfo     Severity = "info"
)

// Category says what a recommendation is about.
type Category string

// The categories.
const (
	CategorySecurity    Category = "security"
	CategoryBackup      Category = "backup"
	CategoryPerformance Category = "performance"
	CategoryCapacity    Category = "capacity"
)

// Recommendation is advice computed from the live state. It disappears once its
// cause is gone.
type Recommendation struct {
	Code     string
	Severity Severity
	Category Category
	Title    string
	Message  string
	Resource Resource
	// Object is the part of the resource that it concerns, such as a table; "" for
	// the resource itself.
	Object     string
	Evidence   map[string]any // figures
	Action     *RecommendedCall
	SQL        string // a statement for the database's owner to run
	Caution    string
	DetectedAt time.Time
}

// RecommendedCall is an API request.
type RecommendedCall struct {
	Method, Path string
	Body         map[string]any
}

// ID identifies the recommendation for as long as its cause exists.
func (r Recommendation) ID() string {
	id := r.Code
	if r.Resource.ID != "" {
		id += ":" + r.Resource.ID
	}
	if r.Object != "" {
		sum := sha256.Sum256([]byte(r.Object))
		id += ":" + hex.EncodeToString(sum[:8])
	}
	return id
}

// Rank orders severities, most severe first.
func (s Severity) Rank() int {
	switch s {
	case SeverityCritical:
		return 0
	case SeverityWarning:
		return 1
	default:
		return 2
	}
}
