package engine

import (
	"time"

	"holdfast/engine/model"
)

// Status is an account at a glance, for who has just been handed a key.
type Status struct {
	Organization    model.Organization
	Projects        []model.Project
	Key             *model.Key
	Databases       []DatabaseView
	NewestBackup    *time.Time
	NewestVerified  *time.Time     // when a backup was last proven
	Unprotected     []DatabaseView // databases that are to have a completed backup and have none
	Usage           Usage
	Operations      []model.DatabaseOperation
	Recommendations []model.Recommendation // all, the gravest first
	Version         string
	Time            time.Time
}

// AgentStatus returns the state of the call's organization.
func (e *Engine) AgentStatus(call *model.Call) (Status, error) {
	org, err := e.Organization(call.Organization)
	if err != nil {
		return Status{}, err
	}
	status := Status{Organization: org, Key: call.Key, Version: e.cfg.Version, Time: e.clock()}
	if status.Projects, err = e.Projects(call); err != nil {
		return status, err
	}
	databases, err := e.databasesOf(call.Organization)
	if err != nil {
		return status, err
	}
	if status.Databases, err = e.views(databases); err != nil {
		return status, err
	}
	for _, db := range status.Databases {
		if db.RunningOp != nil {
			status.Operations = append(status.Operations, *db.RunningOp)
		}
		if db.Unprotected {
			status.Unprotected = append(status.Unprotected, db)
		}
		if b := db.LatestBackup; b != nil && (status.NewestBackup == nil || b.CompletedAt.After(*status.NewestBackup)) {
			status.NewestBackup = b.CompletedAt
		}
		if b := db.ProvenBackup; b != nil && (status.NewestVerified == nil || b.Verification.At.After(*status.NewestVerified)) {
			status.NewestVerified = b.Verification.At
		}
	}
	if status.Usage, err = e.usage(call, databases); err != nil {
		return status, err
	}
	status.Recommendations, err = e.recommendations(call, databases, status.Usage)
	call.Resource = model.Resource{Type: model.ResourceOrganization, ID: org.ID, Name: org.Name}
	return status, err
}

// views adds to each record what lies beside it.
func (e *Engine) views(databases []model.Database) ([]DatabaseView, error) {
	views := make([]DatabaseView, len(databases))
	for i, db := range databases {
		var err error
		if views[i], err = e.view(db); err != nil {
			return nil, err
		}
	}
	return views, nil
}
