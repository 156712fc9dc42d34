package databases

import (
	"context"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// Filling is the right to fill a template. It is ended by one call of Finish or Abandon.
type Filling struct {
	suite    *Suite
	template *template
	// Connection leads to the database to fill.
	Connection Connection
}

// Template returns once the template with that key is ready, or a Filling if the caller is to
// fill it. Of concurrent callers one fills it and the others wait; if that one abandons it,
// the next one tries.
func (s *Suite) Template(ctx context.Context, key string) (*Filling, error) {
	for {
		t, mine, err := s.claimTemplate(key)
		if err != nil {
			return nil, err
		}
		if mine {
			return s.beginFilling(ctx, t)
		}
		select {
		case <-t.ended:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if t.ready {
			return nil, nil
		}
	}
}

// claimTemplate returns the template with the key, and whether the caller is to fill it.
func (s *Suite) claimTemplate(key string) (t *template, mine bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t, known := s.templates[key]; known {
		return t, false, nil
	}
	if len(s.templates) >= maxTemplates {
		return nil, false, model.Errorf(model.CodeConflict, "the sandbox has %d templates at most: use fewer keys, or another `holdfast run`", maxTemplates)
	}
	t = &template{key: key, ended: make(chan struct{})}
	s.templates[key] = t
	return t, true, nil
}

func (s *Suite) beginFilling(ctx context.Context, t *template) (*Filling, error) {
	f := &Filling{suite: s, template: t}
	err := s.do(ctx, func(ctx context.Context, conn *pgx.Conn) (err error) {
		t.database, err = s.withNewName("template", func(name string) error {
			return s.tenant().CreateBeside(ctx, conn, name)
		})
		return err
	})
	if err == nil {
		f.Connection, err = s.connection(t.database)
	}
	if err != nil {
		f.Abandon(ctx)
		return nil, s.explain(err)
	}
	return f, nil
}

// Finish makes the template available. It ends the sessions in it: only a database without
// sessions can be copied.
func (f *Filling) Finish(ctx context.Context) error {
	err := f.suite.do(context.WithoutCancel(ctx), func(ctx context.Context, conn *pgx.Conn) error {
		return postgres.CloseDatabase(ctx, conn, f.template.database)
	})
	if err != nil {
		f.Abandon(ctx)
		return f.suite.explain(err)
	}
	f.suite.mu.Lock()
	defer f.suite.mu.Unlock()
	f.template.ready = true
	close(f.template.ended)
	return nil
}

// Abandon removes the template, which the next caller then fills.
func (f *Filling) Abandon(ctx context.Context) {
	if f.template.database != "" {
		f.suite.drop(ctx, f.template.database)
	}
	f.suite.mu.Lock()
	defer f.suite.mu.Unlock()
	delete(f.suite.templates, f.template.key)
	close(f.template.ended)
}
