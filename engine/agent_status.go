package engine

import (
	"time"

	"holdfast/engine/meta"
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
	Unprotected     []DatabaseView // databases without a completed backup
	Usage           Usage
	Operations      []model.DatabaseOperation
	Recommendations []Recommendation
	Version         string
	Time            time.Time
}

// statusRecommendations is how many recommendations the status shows.
const statusRecommendations = 5

// AgentStatus returns the state of the call's organization.
func (e *Engine) AgentStatus(call *model.Call) (Status, error) {
	org, err := e.Organization(call.Organization)
	if err != nil {
		return Status{}, err
	}
	status := Status{Organization: org, Key: call.Key, Version: e.cfg.Version, Time: e.clock()}
	projects, err := e.ProjectList(call, Page{Limit: MaxLimit})
	if err != nil {
		return status, err
	}
	status.Projects = projects.Items
	if status.Databases, err = e.allViews(call.Organization); err != nil {
		return status, err
	}
	for _, db := range status.Databases {
		if db.RunningOp != nil {
			status.Operations = append(status.Operations, *db.RunningOp)
		}
		if db.LatestBackup == nil {
			status.Unprotected = append(status.Unprotected, db)
		} else if at := db.LatestBackup.CompletedAt; status.NewestBackup == nil || at.After(*status.NewestBackup) {
			status.NewestBackup = at
		}
		records, err := e.backupRecords(db.ID)
		if err != nil {
			return status, err
		}
		for _, b := range records {
			v := b.Verification
			if v.Status == model.VerificationVerified && (status.NewestVerified == nil || v.At.After(*status.NewestVerified)) {
				status.NewestVerified = v.At
			}
		}
	}
	if status.Usage, err = e.Usage(call); err != nil {
		return status, err
	}
	recommendations, err := e.Recommendations(call)
	status.Recommendations = recommendations[:min(len(recommendations), statusRecommendations)]
	call.Resource = model.Resource{Type: model.ResourceOrganization, ID: org.ID, Name: org.Name}
	return status, err
}

// allViews returns every database of an organization.
func (e *Engine) allViews(organization string) ([]DatabaseView, error) {
	const all = 1 << 30
	var databases []model.Database
	if err := e.meta.View(func(tx *meta.Tx) (err error) {
		databases, _, err = tx.Databases().Newest(meta.ByOrganization, meta.Key(organization), "", all)
		return err
	}); err != nil {
		return nil, err
	}
	views := make([]DatabaseView, 0, len(databases))
	for _, db := range databases {
		view, err := e.view(db)
		if err != nil {
			return nil, err
		}
		views = append(views, view)
	}
	return views, nil
}
