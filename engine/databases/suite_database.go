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
	t, err := s.templateFor(ctx, key)
	if err != nil {
		return Connection{}, nil, err
	}
	if err := s.admit(); err != nil {
		return Connection{}, nil, err
	}
	name := s.takeSpare(t)
	if name == "" {
		name, err = s.copy(ctx, t)
	}
	if err != nil {
		s.discharge()
		return Connection{}, nil, s.explain(err)
	}
	s.makeSpare(t)
	remove = func() { s.drop(ctx, name); s.discharge() }
	made, err := s.connection(name)
	if err != nil {
		remove()
		return Connection{}, nil, err
	}
	return made, remove, nil
}

// copy returns a new copy of a template.
func (s *Suite) copy(ctx context.Context, t *template) (name string, err error) {
	err = s.do(ctx, func(ctx context.Context, conn *pgx.Conn) (err error) {
		name, err = s.withNewName("test", func(name string) error {
			return postgres.CopyDatabase(ctx, conn, name, t.database, s.db.Owner)
		})
		return err
	})
	if err != nil && name != "" {
		s.drop(ctx, name)
	}
	return name, err
}

// spare is a copy of a template that was made, or is being made, before a test asked for one.
type spare struct {
	made chan struct{} // closed when name is set
	name string        // "" if it could not be made
}

// takeSpare returns the name of the template's spare once it is made, "" if there is none.
func (s *Suite) takeSpare(t *template) string {
	s.mu.Lock()
	next := t.next
	t.next = nil
	s.mu.Unlock()
	if next == nil {
		return ""
	}
	<-next.made
	return next.name
}

// makeSpare makes a spare of the template while a test runs, unless there is one.
func (s *Suite) makeSpare(t *template) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || t.next != nil {
		return
	}
	next := &spare{made: make(chan struct{})}
	t.next = next
	s.databases.core.Background(func(ctx context.Context) {
		defer close(next.made)
		name, err := s.copy(ctx, t)
		if err != nil {
			s.warn("copy a template ahead", t.database, err)
			return
		}
		next.name = name
	})
}

// emptyTemplate is the key of the template for databases that begin empty. No client can
// name it.
const emptyTemplate = ""

// templateFor returns the template to copy.
func (s *Suite) templateFor(ctx context.Context, key string) (*template, error) {
	if key != emptyTemplate {
		s.mu.Lock()
		defer s.mu.Unlock()
		t, known := s.templates[key]
		if !known || !t.ready {
			return nil, model.Errorf(model.CodeNotFound, "template: %q is not ready; post it to the templates first, and fill it if you are told to", key)
		}
		return t, nil
	}
	filling, err := s.Template(ctx, emptyTemplate)
	if err == nil && filling != nil {
		err = filling.Finish(ctx)
	}
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.templates[emptyTemplate], nil
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
