package operator

import (
	"context"
	"fmt"

	"holdfast/engine/model"
)

// Log are the arguments of audit.verify, and part of those of audit.export.
type Log struct {
	// Appliance selects the log of requests that belong to no organization because they have no valid key for one.
	Appliance bool `json:"appliance"`
}

// of returns call for the selected log.
func (in Log) of(call *model.Call) *model.Call {
	if !in.Appliance {
		return call
	}
	about := *call
	about.Organization = ""
	return &about
}

// Verified is the result of audit.verify. The chain is intact if there are no faults.
type Verified struct {
	Entries int      `json:"entries"`
	Faults  []string `json:"faults"`
}

// Err returns an error if the chain is not intact.
func (v Verified) Err() error {
	if len(v.Faults) == 0 {
		return nil
	}
	return fmt.Errorf("the chain of %d audit entries has faults", v.Entries)
}

func auditVerify(_ context.Context, a Appliance, call *model.Call, in Log) (any, error) {
	found, err := a.Core.AuditVerify(in.of(call))
	verified := Verified{Entries: found.Entries, Faults: []string{}}
	for _, fault := range found.Faults {
		verified.Faults = append(verified.Faults, fault.String())
	}
	return verified, err
}

// Export are the arguments of audit.export. From is the position to continue at.
type Export struct {
	Log
	From uint64 `json:"from"`
}

// Exported is a part of an audit log: entries in stored form, oldest first.
type Exported struct {
	Lines []string `json:"lines"`
	Next  uint64   `json:"next"` // 0 at the end
}

// exportBatch is the number of entries exported at a time.
const exportBatch = 1000

func auditExport(_ context.Context, a Appliance, call *model.Call, in Export) (any, error) {
	call.Audited = in.From > 0 // once for the whole export
	lines, next, err := a.Core.AuditExport(in.of(call), in.From, exportBatch)
	return Exported{Lines: lines, Next: next}, err
}
