package sandbox

import (
	"context"
	"time"

	"holdfast/server/api/wire"
)

// TB is the part of testing.TB that New needs.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	Cleanup(func())
	Context() context.Context
}

// Database is the database of one test.
type Database struct {
	// URL is what drivers take, with the password.
	URL  string
	Name string
	// Environment has the same as libpq's variables.
	Environment wire.Environment
}

// Template says what databases begin with.
type Template struct {
	// Hash identifies the content: all tests with the same hash get copies of what the
	// first one has filled. See [Hash] and [HashFiles].
	Hash string
	// Fill fills the database once, by migrations for example. It closes its
	// connections. The context ends with the test.
	Fill func(ctx context.Context, db Database) error
}

// timeout bounds the wait for a database, and for the start of a private appliance.
const timeout = 2 * time.Minute

// New creates a database for the test, empty or as the template says, and drops it when
// the test has ended. It fails the test if that does not work. It is safe for concurrent
// use.
func New(t TB, template ...Template) Database {
	t.Helper()
	if len(template) > 1 {
		t.Fatalf("sandbox: New takes one template at most")
	}
	db, drop, err := open(t.Context(), template)
	if err != nil {
		t.Fatalf("sandbox: %v", err)
	}
	t.Cleanup(drop)
	return db
}

func open(ctx context.Context, templates []Template) (_ Database, drop func(), err error) {
	a, err := find(ctx)
	if err != nil {
		return Database{}, nil, err
	}
	hash := ""
	for _, template := range templates {
		if err := a.ensure(ctx, template); err != nil {
			return Database{}, nil, err
		}
		hash = template.Hash
	}
	// The database outlives the test's context, which ends before its cleanups run.
	asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	var made struct {
		Name        string
		Environment wire.Environment
	}
	held, err := a.post(asking, "/sandbox/databases", map[string]string{"template": hash}, &made)
	if err != nil {
		return Database{}, nil, err
	}
	return database(made.Environment), held.close, nil
}

func database(e wire.Environment) Database {
	return Database{URL: e.DatabaseURL, Name: e.Database, Environment: e}
}
