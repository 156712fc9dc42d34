package databases

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// The bounds of a suite. A database takes 8 MB of disk, and a template too.
const (
	maxTestDatabases = 200
	maxTemplates     = 50
	maxTemplateKey   = 128
	suiteSessions    = 2 // that create and drop databases at a time
	suiteTimeout     = time.Minute
)

// A Suite gives out databases in the server of a sandbox, one for each test, as copies of
// templates. The test suite names a template by a key, such as a hash of its migrations,
// and fills it once. The next copy is made while a test runs. None of it is recorded: it
// ends with the sandbox. A Suite is safe for concurrent use.
type Suite struct {
	databases *Service
	db        model.Database
	slots     chan struct{} // holds one for each session in use

	mu        sync.Mutex
	closed    bool
	idle      []*pgx.Conn
	templates map[string]*template
	open      int // test databases
	last      int // number of the last database
}

// template is a database that tests get copies of, or that is being filled.
type template struct {
	key, database string
	ready         bool
	next          *spare        // which no test has yet, nil if there is none
	ended         chan struct{} // closed when the attempt to fill it has ended
}

// NewSuite returns the suite of a sandbox.
func (s *Service) NewSuite(sandbox Sandbox) (*Suite, error) {
	db, err := s.Record(sandbox.ID)
	if err != nil {
		return nil, err
	}
	return &Suite{databases: s, db: db, slots: make(chan struct{}, suiteSessions), templates: map[string]*template{}}, nil
}

// Close ends the sessions of the suite. The databases are removed with the sandbox.
func (s *Suite) Close() {
	s.mu.Lock()
	idle := s.idle
	s.idle, s.closed = nil, true
	s.mu.Unlock()
	for _, conn := range idle {
		_ = conn.Close(context.Background())
	}
}

// do runs act in a session of the appliance's own role. act is not interrupted when ctx ends:
// the server would go on with it, and what it makes has to be removed.
func (s *Suite) do(ctx context.Context, act func(context.Context, *pgx.Conn) error) error {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), suiteTimeout)
	defer cancel()
	conn, err := s.session(ctx)
	if err != nil {
		return err
	}
	defer s.keep(conn)
	return act(ctx, conn)
}

// session returns a session that is idle, or a new one. A test may have ended the idle ones with pg_terminate_backend.
func (s *Suite) session(ctx context.Context) (*pgx.Conn, error) {
	for conn := s.takeIdle(); conn != nil; conn = s.takeIdle() {
		if conn.Ping(ctx) == nil {
			return conn, nil
		}
		_ = conn.Close(ctx)
	}
	conn, err := s.databases.Instances.Connect(ctx, s.db.ID, Maintenance)
	if err != nil {
		return nil, fmt.Errorf("connect to the sandbox: %w", err)
	}
	return conn, nil
}

// takeIdle returns an idle session, nil if there is none.
func (s *Suite) takeIdle() *pgx.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := len(s.idle) - 1
	if last < 0 {
		return nil
	}
	conn := s.idle[last]
	s.idle = s.idle[:last]
	return conn
}

// keep keeps a session for the next act, unless it is broken.
func (s *Suite) keep(conn *pgx.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || conn.IsClosed() {
		_ = conn.Close(context.Background())
		return
	}
	s.idle = append(s.idle, conn)
}

// name returns a new name for a database.
func (s *Suite) name(prefix string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	return fmt.Sprintf("%s_%d", prefix, s.last)
}

// withNewName calls create with names until one is free.
func (s *Suite) withNewName(prefix string, create func(name string) error) (name string, err error) {
	for {
		name = s.name(prefix)
		if err = create(name); !errors.Is(err, postgres.ErrDatabaseExists) {
			return name, err
		}
	}
}

// connection returns how the owner connects to a database of the suite.
func (s *Suite) connection(name string) (Connection, error) {
	c, err := s.databases.ConnectionOf(s.db, true)
	c.Database = name
	return c, err
}

func (s *Suite) tenant() postgres.Tenant {
	return postgres.Tenant{Database: s.db.Name, Owner: s.db.Owner, ReadOnly: s.db.ReadOnly}
}

// drop removes a database, also when ctx has ended. A failure is logged: nobody waits for it,
// and the database goes with the sandbox.
func (s *Suite) drop(ctx context.Context, name string) {
	err := s.do(context.WithoutCancel(ctx), func(ctx context.Context, conn *pgx.Conn) error {
		return postgres.DropDatabase(ctx, conn, name)
	})
	if err != nil {
		s.warn("drop a test's database", name, err)
	}
}

// warn logs a failure, unless the suite has been closed, which ends what runs.
func (s *Suite) warn(message, name string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.databases.core.Log.Warn(message, "database", s.db.ID, "name", name, "error", err)
	}
}

// ValidateTemplateKey checks what a test suite calls a template.
func ValidateTemplateKey(field, key string) error {
	if key == "" || len(key) > maxTemplateKey {
		return model.Invalid(field, "a name or hash of 1 to %d bytes is needed", maxTemplateKey)
	}
	return nil
}

// explain returns the error for a client.
func (s *Suite) explain(err error) error {
	return ServerFailed(err)
}
