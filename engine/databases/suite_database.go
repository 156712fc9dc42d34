package databases

import (
	"context"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// TestDatabase creates a database for one test: a copy of the template with that key, or
// an empty one if the key is "". The caller calls remove when the test has ended.
func (s *Suite) TestDatabase(ctx context.Context, key string) (_ Connection, remove func(), err error) {
	from, err := s.templateFor(ctx, key)
	if err != nil {
		return Connection{}, nil, err
	}
	if err := s.admit(); err != nil {
		return Connection{}, nil, err
	}
	defer func() {
		if err != nil {
			s.discharge()
		}
	}()
	var name string
	err = s.do(ctx, func(ctx context.Context, conn *pgx.Conn) (err error) {
		name, err = s.withNewName("test", func(name string) error {
			return postgres.CopyDatabase(ctx, conn, name, from, s.db.Owner)
		})
		return err
	})
	if err != nil {
		if name != "" {
			s.drop(ctx, name)
		}
		return Connection{}, nil, s.explain(err)
	}
	made, err := s.connection(name)
	return made, func() { s.drop(ctx, name); s.discharge() }, err
}

// emptyTemplate is the key of the template for databases that begin empty. No client can
// name it.
const emptyTemplate = ""

// templateFor returns the database to copy.
func (s *Suite) templateFor(ctx context.Context, key string) (string, error) {
	if key != emptyTemplate {
		s.mu.Lock()
		defer s.mu.Unlock()
		t, known := s.templates[key]
		if !known || !t.ready {
			return "", model.Errorf(model.CodeNotFound, "template: %q is not ready; post it to the templates first, and fill it if you are told to", key)
		}
		return t.database, nil
	}
	filling, err := s.Template(ctx, emptyTemplate)
	if err == nil && filling != nil {
		err = filling.Finish(ctx)
	}
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.templates[emptyTemplate].database, nil
}

// admit counts one more database, unless there are too many.
func (s *Suite) admit() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open >= maxTestDatabases {
		return model.Errorf(model.CodeConflict, "the sandbox has %d databases of tests at a time at most: end some first", maxTestDatabases)
	}
	s.open++
	return nil
}

func (s *Suite) discharge() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
}
