package insight

import (
	"time"

	"holdfast/engine/databases"
	"holdfast/engine/model"
)

// Status summarizes an account, for a client that has just received a key.
type Status struct {
	Organization    model.Organization
	Projects        []model.Project
	Key             *model.Key
	Databases       []databases.View
	NewestBackup    *time.Time
	NewestVerified  *time.Time       // when a backup was last verified
	Unprotected     []databases.View // databases that should have a completed backup and have none
	Usage           Usage
	Operations      []model.DatabaseOperation
	Recommendations []model.Recommendation // all, the most severe first
	Server          Server
	Time            time.Time
}

// Server describes the appliance, as far as everybody who can sign in may know it.
type Server struct {
	Version           string
	PostgresVersion   string // for new databases, "" if there is none
	PostgresOrigin    string // where it came from
	DataDirectory     string
	TrashRetention    time.Duration // of deleted databases
	ReplacedRetention time.Duration // of what a restore replaced
}

// Server returns the description of the appliance.
func (s *Service) Server() Server {
	config, postgres := s.core.Config, s.databases.Binaries
	return Server{
		Version: config.Version, PostgresVersion: postgres.Version, PostgresOrigin: string(postgres.Origin),
		DataDirectory: config.DataDir, TrashRetention: config.TrashRetention, ReplacedRetention: config.ReplacedRetention,
	}
}

// AgentStatus returns the state of the call's organization.
func (s *Service) AgentStatus(call *model.Call) (Status, error) {
	org, err := s.access.Organization(call.Organization)
	if err != nil {
		return Status{}, err
	}
	status := Status{Organization: org, Key: call.Key, Server: s.Server(), Time: s.core.Clock()}
	if status.Projects, err = s.access.Projects(call); err != nil {
		return status, err
	}
	databases, err := s.databases.DatabasesOf(call.Organization)
	if err != nil {
		return status, err
	}
	if status.Databases, err = s.views(databases); err != nil {
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
		if b := db.VerifiedBackup; b != nil && (status.NewestVerified == nil || b.Verification.At.After(*status.NewestVerified)) {
			status.NewestVerified = b.Verification.At
		}
	}
	if status.Usage, err = s.usage(call, databases); err != nil {
		return status, err
	}
	status.Recommendations, err = s.recommendations(call, databases, status.Usage)
	call.Resource = model.Resource{Type: model.ResourceOrganization, ID: org.ID, Name: org.Name}
	return status, err
}

// views returns the views of the records.
func (s *Service) views(dbs []model.Database) ([]databases.View, error) {
	views := make([]databases.View, len(dbs))
	for i, db := range dbs {
		var err error
		if views[i], err = s.databases.View(db); err != nil {
			return nil, err
		}
	}
	return views, nil
}
