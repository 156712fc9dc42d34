package engine

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

const (
	// startTimeout bounds the start of an instance, crash recovery included.
	startTimeout = 5 * time.Minute
	// certificateLife is how long an instance's certificate is valid.
	certificateLife = 397 * 24 * time.Hour
)

// waits are how long the appliance waits before it uses force.
type waits struct {
	stop     time.Duration // for a fast shutdown
	sessions time.Duration // for sessions that hold up a change, see insist.go
	wal      time.Duration // for the WAL that a backup needs to be archived
}

func defaultWaits() waits {
	return waits{stop: time.Minute, sessions: 10 * time.Second, wal: 10 * time.Minute}
}

// loginPlaces is how many logins may be under way at a time in one database
// without taking a place from its sessions.
const loginPlaces = 120

// dataDirectory is where a generation of a database's files lies.
func (e *Engine) dataDirectory(id string, generation int) string {
	return filepath.Join(e.databaseDirectory(id), strconv.Itoa(generation))
}

func (e *Engine) databaseDirectory(id string) string {
	return filepath.Join(e.cfg.DataDir, "instances", id)
}

// spec says how the database's instance is run. It fails when the binaries of
// the database's major version are missing.
func (e *Engine) spec(ctx context.Context, db model.Database) (postgres.Spec, error) {
	bin, err := e.majors.find(ctx, db.Major)
	if err != nil {
		return postgres.Spec{}, err
	}
	return postgres.Spec{
		ID:  db.ID,
		Bin: bin,
		Dir: e.dataDirectory(db.ID, db.Generation),
		Config: postgres.Config{
			Port: db.Port, Listen: e.cfg.Listen, SocketDir: e.socketDir,
			Settings: e.settings(db), Logins: loginPlaces,
		},
		HBA: access(db),
	}, nil
}

// access says who may connect to the database.
func access(db model.Database) postgres.HBA {
	if db.Status == model.DatabaseImporting { // nobody but the import, as the owner
		return postgres.HBA{Database: db.Name, Local: db.Owner}
	}
	return postgres.HBA{Database: db.Name, Users: []string{db.Owner, db.ReadOnly}, Allow: db.Allowlist}
}

// tenant opens the database's passwords.
func (e *Engine) tenant(db model.Database) (postgres.Tenant, error) {
	owner, err := e.sealer.open(passwordPurpose(db.ID, db.Owner), db.OwnerPassword)
	if err != nil {
		return postgres.Tenant{}, err
	}
	readOnly, err := e.sealer.open(passwordPurpose(db.ID, db.ReadOnly), db.ReadOnlyPassword)
	if err != nil {
		return postgres.Tenant{}, err
	}
	t := postgres.Tenant{
		Database: db.Name,
		Owner:    db.Owner, OwnerPassword: owner,
		ReadOnly: db.ReadOnly, ReadOnlyPassword: readOnly,
		Connections: postgres.Config{Settings: db.Settings}.Sessions(postgres.Binaries{Major: db.Major}),
	}
	if own := db.OwnPassword; own != nil {
		t.OwnerVerifier, err = e.sealer.open(verifierPurpose(db.ID, db.Owner), own.Verifier)
	}
	return t, err
}

func verifierPurpose(database, role string) string { return "verifier " + database + " " + role }

func passwordPurpose(database, role string) string { return "password " + database + " " + role }

// issueCertificate gives a data directory a certificate.
func (e *Engine) issueCertificate(dir string) error {
	if err := e.ca.Issue(dir, e.instanceHosts(), certificateLife); err != nil {
		return fmt.Errorf("issue certificate: %w", err)
	}
	return nil
}

// instanceHosts returns every name and address instances are reached by,
// sorted.
func (e *Engine) instanceHosts() []string {
	hosts := []string{e.cfg.PublicHost, "localhost", "127.0.0.1", "::1"}
	for _, address := range e.cfg.Listen {
		if ip := net.ParseIP(address); ip != nil && !ip.IsUnspecified() {
			hosts = append(hosts, ip.String())
		}
	}
	if ip := net.ParseIP(e.cfg.PublicHost); ip != nil {
		hosts[0] = ip.String()
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// provision makes the database, roles and passwords of a running instance
// what the record db says.
func (e *Engine) provision(ctx context.Context, instance string, db model.Database) error {
	return e.maintain(ctx, instance, e.provisioning(db))
}

func (e *Engine) provisioning(db model.Database) func(context.Context, *pgx.Conn) error {
	return func(ctx context.Context, conn *pgx.Conn) error {
		tenant, err := e.tenant(db)
		if err != nil {
			return err
		}
		return postgres.Provision(ctx, conn, tenant)
	}
}

// instanceStates remembers what the supervisor last said of each instance.
type instanceStates struct {
	mu     sync.RWMutex
	states map[string]instanceState
	late   map[string]bool // not yet what their records say, see late.go
}

type instanceState struct {
	state  postgres.State
	reason string
	failed bool // since it last ran
}

func newInstanceStates() *instanceStates {
	return &instanceStates{states: map[string]instanceState{}, late: map[string]bool{}}
}

func (s *instanceStates) swap(id string, next instanceState) (last instanceState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last = s.states[id]
	next.failed = next.state == postgres.StateFailed || last.failed && next.state != postgres.StateRunning
	s.states[id] = next
	return last
}

func (s *instanceStates) get(id string) instanceState {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.states[id]
}

// drop forgets an instance that is no more.
func (s *instanceStates) drop(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.states, id)
	delete(s.late, id)
}

// instanceChanged hears from the supervisor; an instance that dies or comes
// back by itself is audited.
func (e *Engine) instanceChanged(id string, state postgres.State, reason string) {
	switch state {
	case postgres.StateRunning:
		e.receiveLate(id)
	case postgres.StateDown, postgres.StateFailed:
		reason = e.explainDown(reason)
	}
	last := e.states.swap(id, instanceState{state: state, reason: reason})
	var action model.Action
	switch {
	case state == postgres.StateDown && last.state == postgres.StateRunning:
		action = model.ActionInstanceDown
	case state == postgres.StateRunning && (last.state == postgres.StateDown || last.state == postgres.StateFailed):
		action = model.ActionInstanceUp
	case state != postgres.StateFailed && !last.failed:
		return
	}
	var db model.Database
	if err := e.meta.View(func(tx *meta.Tx) (err error) {
		db, err = tx.Databases().Get(id)
		return err
	}); err != nil {
		return // an instance that is being built has no record of its own
	}
	e.tellState(db, last.failed, state, reason)
	if action == "" {
		return
	}
	call := e.system(action, db.Organization, databaseResource(db))
	if reason != "" {
		call.Note("reason", reason)
	}
	e.Finish(call, nil)
}

// maintenance is the database in which the appliance's own role works. Tenants
// cannot connect to it, so nothing in it is theirs.
const maintenance = "postgres"
