package engine

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"holdfast/engine/model"
)

// Severity ranks recommendations.
type Severity string

// The severities, gravest first.
const (
	SeverityCritical Severity = "critical"
	SeverityWarning  Severity = "warning"
	SeverityInfo     Severity = "info"
)

// Recommendation is advice computed from the live state; it goes away by
// itself once its cause has.
type Recommendation struct {
	ID         string
	Code       string
	Severity   Severity
	Category   string // "security", "backup", "performance" or "capacity"
	Title      string
	Message    string
	Resource   model.Resource
	Evidence   map[string]any
	Action     *RecommendedCall
	Caution    string
	DetectedAt time.Time
}

// RecommendedCall is the API call that removes the cause.
type RecommendedCall struct {
	Method, Path string
	Body         map[string]any
}

// Recommendations returns the advice for the call's organization, gravest
// first.
func (e *Engine) Recommendations(call *model.Call) ([]Recommendation, error) {
	records, err := e.databasesOf(call.Organization)
	if err != nil {
		return nil, err
	}
	databases, err := e.views(records)
	if err != nil {
		return nil, err
	}
	host, err := measureHost(e.cfg.DataDir)
	if err != nil {
		return nil, err
	}
	found := e.adviseDisk(host)
	for _, db := range databases {
		found = append(found, adviseBackup(db)...)
		found = append(found, adviseAllowlist(db)...)
	}
	now := e.clock()
	for i := range found {
		found[i].ID, found[i].DetectedAt = found[i].Code+":"+found[i].Resource.ID, now
	}
	rank := map[Severity]int{SeverityCritical: 0, SeverityWarning: 1, SeverityInfo: 2}
	slices.SortStableFunc(found, func(a, b Recommendation) int {
		return cmp.Compare(rank[a.Severity], rank[b.Severity])
	})
	call.Resource = model.Resource{Type: model.ResourceOrganization, ID: call.Organization}
	return found, nil
}

// adviseBackup speaks up for databases that could not be brought back.
func adviseBackup(db DatabaseView) []Recommendation {
	if db.LatestBackup != nil || db.Status == model.DatabaseCreating || db.Status == model.DatabaseDeleting {
		return nil
	}
	return []Recommendation{{
		Code: "no_backup", Severity: SeverityWarning, Category: "backup",
		Title:    "No backup",
		Message:  fmt.Sprintf("The database %s has no completed backup: what is deleted or overwritten in it is lost.", db.Name),
		Resource: databaseResource(db.Database),
		Evidence: map[string]any{"completed_backups": 0, "created_at": db.CreatedAt},
		Action:   &RecommendedCall{Method: "POST", Path: "/v1/databases/" + db.ID + "/backups"},
	}}
}

// adviseAllowlist speaks up for databases that anybody may try to log in to.
func adviseAllowlist(db DatabaseView) []Recommendation {
	for _, prefix := range db.Allowlist {
		if prefix.Bits() == 0 {
			return []Recommendation{{
				Code: "open_allowlist", Severity: SeverityCritical, Category: "security",
				Title:    "Open to every address",
				Message:  fmt.Sprintf("The allow-list of %s lets every address in: only the password stands between the network and the data.", db.Name),
				Resource: databaseResource(db.Database),
				Evidence: map[string]any{"entry": prefix.String()},
				Action:   &RecommendedCall{Method: "PUT", Path: "/v1/databases/" + db.ID + "/allowlist"},
				Caution:  "Sessions from addresses that are not in the new list end at once.",
			}}
		}
	}
	return nil
}

// diskWarning and diskCritical are the shares of free disk that are too few.
const (
	diskWarning  = 0.10
	diskCritical = 0.05
)

func (e *Engine) adviseDisk(host Host) []Recommendation {
	free := float64(host.DiskFree) / float64(max(host.DiskTotal, 1))
	if free >= diskWarning {
		return nil
	}
	severity := SeverityWarning
	if free < diskCritical {
		severity = SeverityCritical
	}
	return []Recommendation{{
		Code: "disk_nearly_full", Severity: severity, Category: "capacity",
		Title:    "The disk is nearly full",
		Message:  fmt.Sprintf("%.0f %% of the disk is free. A full disk stops every database on this machine.", free*100),
		Resource: model.Resource{Type: model.ResourceNone},
		Evidence: map[string]any{"disk_free_bytes": host.DiskFree, "disk_total_bytes": host.DiskTotal},
	}}
}
