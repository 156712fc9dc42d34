package databases

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// Timeouts are how long the appliance waits before it uses force.
type Timeouts struct {
	Start    time.Duration // of an instance, crash recovery included
	Stop     time.Duration // of a fast shutdown
	Clean    time.Duration // of one that must not be by force, because the data are used or copied next
	Sessions time.Duration // of a change that sessions block, see apply.go
	WAL      time.Duration // for the WAL that a backup needs to be archived
}

func defaultTimeouts() Timeouts {
	return Timeouts{Start: 5 * time.Minute, Stop: time.Minute, Clean: time.Hour, Sessions: 10 * time.Second, WAL: 10 * time.Minute}
}

// loginSlots is how many logins one database can process at a time without taking
// connections from its sessions.
const loginSlots = 120

// DataDirectory returns the data directory of a generation of a database.
func (s *Service) DataDirectory(id string, generation int) string {
	return filepath.Join(s.DatabaseDirectory(id), strconv.Itoa(generation))
}

// DatabaseDirectory returns the directory that holds a database's data directories.
func (s *Service) DatabaseDirectory(id string) string {
	return filepath.Join(s.core.Config.DataDir, "instances", id)
}

// Spec returns how to run the database's instance. It fails when the binaries of
// the database's major version are missing.
func (s *Service) Spec(ctx context.Context, db model.Database) (postgres.Spec, error) {
	bin, err := s.Majors.Find(ctx, db.Major)
	if err != nil {
		return postgres.Spec{}, err
	}
	settings := s.settings(db)
	for _, name := range s.unknownSettings(bin, db) {
		delete(settings, name)
	}
	return postgres.Spec{
		ID:  db.ID,
		Bin: bin,
		Dir: s.DataDirectory(db.ID, db.Generation),
		Config: postgres.Config{
			Port: db.Port, Listen: s.core.Config.Listen, SocketDir: s.SocketDir,
			Preload: libraries(db, settings), Settings: settings, Logins: loginSlots,
		},
		HBA: Access(db),
	}, nil
}

// Access returns the access rules of the database.
func Access(db model.Database) postgres.HBA {
	if db.Status == model.DatabaseImporting || db.Name == "" { // only the import, as the owner; a warm server has neither
		return postgres.HBA{Database: db.Name, Local: db.Owner}
	}
	allow := db.Allowlist
	if db.SleepAfter > 0 && len(allow) > 0 { // the proxy is the only client
		allow = proxyNetworks()
	}
	return postgres.HBA{
		Local: db.Owner, Database: db.Name, Beside: db.Sandbox, Users: clientUsers(db), Others: db.Superuser, Creators: creators(db), Allow: allow,
	}
}

// clientUsers returns the users as whom clients may log in to a database.
func clientUsers(db model.Database) []string {
	users := []string{db.Owner, db.ReadOnly}
	if db.LogicalReplication {
		users = append(users, model.ReplicationUser(db.Owner))
	}
	return append(users, roleUsers(db)...)
}

// tenant returns the database's roles with their passwords decrypted.
func (s *Service) tenant(db model.Database) (postgres.Tenant, error) {
	owner, err := s.core.Sealer.Open(passwordPurpose(db.ID, db.Owner), db.OwnerPassword)
	if err != nil {
		return postgres.Tenant{}, err
	}
	readOnly, err := s.core.Sealer.Open(passwordPurpose(db.ID, db.ReadOnly), db.ReadOnlyPassword)
	if err != nil {
		return postgres.Tenant{}, err
	}
	t := postgres.Tenant{
		Database: db.Name,
		Owner:    db.Owner, OwnerPassword: owner,
		ReadOnly: db.ReadOnly, ReadOnlyPassword: readOnly,
		Connections: s.maxSessions(db), Superuser: db.Superuser,
	}
	if limit := db.ConnectionLimit; limit > 0 && (t.Connections == 0 || limit < t.Connections) {
		t.Connections = limit
	}
	if t.Roles, err = s.clientRoles(db); err != nil {
		return t, err
	}
	if db.LogicalReplication {
		t.Replication = model.ReplicationUser(db.Owner)
		if t.ReplicationPassword, err = s.core.Sealer.Open(passwordPurpose(db.ID, t.Replication), db.ReplicationPassword); err != nil {
			return t, err
		}
	}
	if own := db.OwnPassword; own != nil {
		t.OwnerVerifier, err = s.core.Sealer.Open(verifierPurpose(db.ID, db.Owner), own.Verifier)
	}
	return t, err
}

func verifierPurpose(database, role string) string { return "verifier " + database + " " + role }

func passwordPurpose(database, role string) string { return "password " + database + " " + role }

// Provision brings the database, roles and passwords of a running instance in line
// with the record db.
func (s *Service) Provision(ctx context.Context, instance string, db model.Database) error {
	return s.maintain(ctx, instance, s.provisioning(db))
}

func (s *Service) provisioning(db model.Database) func(context.Context, *pgx.Conn) error {
	return func(ctx context.Context, conn *pgx.Conn) error {
		tenant, err := s.tenant(db)
		if err != nil {
			return err
		}
		return postgres.Provision(ctx, conn, tenant)
	}
}

// EndCopiedPrepared rolls back what is prepared in a running instance that holds a copy of another database's data.
func (s *Service) EndCopiedPrepared(ctx context.Context, instance string, db model.Database) error {
	tenant, err := s.tenant(db)
	if err != nil {
		return err
	}
	return s.maintain(ctx, instance, func(ctx context.Context, conn *pgx.Conn) error {
		ended, err := tenant.EndCopiedPrepared(ctx, conn)
		if len(ended) > 0 {
			s.core.Log.Warn("rolled back the prepared transactions of a copy", "database", db.ID, "identifiers", ended)
		}
		return err
	})
}

// RefuseRenamedPrepared refuses a running instance with data of the database that have prepared transactions and an earlier name.
func (s *Service) RefuseRenamedPrepared(ctx context.Context, instance string, db model.Database) error {
	tenant, err := s.tenant(db)
	if err != nil {
		return err
	}
	return s.maintain(ctx, instance, tenant.RefuseRenamedPrepared)
}

// instanceStates holds the state that the supervisor last reported for each
// instance.
type instanceStates struct {
	changing     sync.Mutex // serializes changes: each depends on the last state
	states       sync.Map   // instance id to instanceState
	pendingRoles sync.Map   // id to whether access rules are too, see pending_roles.go
}

// instanceState is one report from the supervisor.
type instanceState struct {
	state  postgres.State
	reason string
	failed bool // at least once since it last ran
	slept  bool // since it last ran; no WAL is received from then on
}

func (s *instanceStates) swap(id string, next instanceState) (last instanceState) {
	s.changing.Lock()
	defer s.changing.Unlock()
	last = s.get(id)
	next.failed = next.state == postgres.StateFailed || last.failed && next.state != postgres.StateRunning
	next.slept = next.state == postgres.StateAsleep || last.slept && next.state != postgres.StateRunning
	s.states.Store(id, next)
	return last
}

func (s *instanceStates) get(id string) instanceState {
	found, _ := s.states.Load(id)
	state, _ := found.(instanceState)
	return state
}

// IDs returns the instances that have a recorded state.
func (s *instanceStates) IDs() (ids []string) {
	for id := range s.states.Range {
		ids = append(ids, id.(string))
	}
	return ids
}

// Drop removes an instance that no longer exists.
func (s *instanceStates) Drop(id string) {
	s.states.Delete(id)
	s.pendingRoles.Delete(id)
}

// HandleInstanceState handles a state report from the supervisor. It audits an instance
// that dies or recovers without a request.
func (s *Service) HandleInstanceState(id string, state postgres.State, reason string) {
	switch state {
	case postgres.StateRunning:
		s.applyPendingRolesOnStart(id)
	case postgres.StateDown, postgres.StateFailed:
		reason = s.core.ExplainDown(reason)
	}
	last := s.States.swap(id, instanceState{state: state, reason: reason})
	if state == postgres.StateRunning && last.slept { // perhaps after attempts that failed
		s.receiveAgain(id)
	}
	var action model.Action
	switch {
	case state == postgres.StateDown && last.state == postgres.StateRunning:
		action = model.ActionInstanceDown
	case state == postgres.StateRunning && (last.state == postgres.StateDown || last.state == postgres.StateFailed):
		action = model.ActionInstanceUp
	case state != postgres.StateFailed && !last.failed:
		return
	}
	db, err := s.Record(id)
	if err != nil {
		return // an instance that is being built has no record of its own
	}
	s.emitStateEvent(db, last.failed, state, reason)
	if action == "" {
		return
	}
	call := s.core.System(action, db.Organization, DatabaseResource(db))
	if reason != "" {
		call.Note("reason", reason)
	}
	s.core.Finish(call, nil)
}

// Maintenance is the database that the appliance's own role connects to. Tenants own nothing in it; their roles that
// create databases may connect to it, and no others.
const Maintenance = "postgres"

// emitStateEvent emits an event when a database fails, or runs again after it had
// failed before.
func (s *Service) emitStateEvent(db model.Database, failed bool, now postgres.State, reason string) {
	event := model.Event{Organization: db.Organization, Resource: DatabaseResource(db)}
	switch {
	case now == postgres.StateFailed && !failed:
		event.Type, event.Message = model.EventDatabaseFailed, fmt.Sprintf("The database %s does not start: %s", db.Name, reason)
	case now == postgres.StateRunning && failed:
		event.Type, event.Message = model.EventDatabaseRecovered, fmt.Sprintf("The database %s is running again.", db.Name)
	default:
		return
	}
	s.core.Emit(event)
}
