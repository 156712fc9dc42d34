package operator

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"holdfast/engine/databases"
	"holdfast/engine/model"
	"holdfast/server/api"
	"holdfast/server/api/wire"
)

// The paths for the databases of tests. A request names its sandbox by the token of a lease, as
// `Authorization: Bearer TOKEN`; without one it uses a sandbox that all such clients share. The first line of a
// response says what was given, and the response stays open: what was given is kept until the client closes the
// connection, or until the kernel does so for a client that has died.
const (
	// TestDatabasePath is posted a NewTestDatabase; the response is a TestDatabase.
	TestDatabasePath = "/sandbox/databases"
	// TestTemplatePath is posted a NewTestTemplate; the response is a TestTemplate.
	TestTemplatePath = "/sandbox/templates"
)

// NewTestDatabase is a request for a database for one test.
type NewTestDatabase struct {
	Template string `json:"template,omitempty"` // its hash; "" for an empty database
}

// TestDatabase is a database for one test. It is dropped when the response is closed.
type TestDatabase struct {
	Name        string           `json:"name"`
	Environment wire.Environment `json:"environment"`
}

// NewTestTemplate registers a template.
type NewTestTemplate struct {
	Hash string `json:"hash"`
}

// TestTemplate says that a template is ready, or that the client is to fill it: to run its migrations in the
// database, then to post to Finish. If it closes the response before that, the template is removed and the
// next client fills it.
type TestTemplate struct {
	Ready       bool              `json:"ready"`
	Finish      string            `json:"finish,omitempty"` // a path
	Environment *wire.Environment `json:"environment,omitempty"`
}

func (a Appliance) serveTestDatabase(w http.ResponseWriter, r *http.Request) {
	var in NewTestDatabase
	a.inSuite(w, r, &in, func(ctx context.Context, s *suite, give func(any)) error {
		if in.Template != "" {
			if err := databases.ValidateTemplateKey("template", in.Template); err != nil {
				return err
			}
		}
		made, remove, err := s.TestDatabase(ctx, in.Template)
		if err != nil {
			return err
		}
		defer remove()
		give(TestDatabase{Name: made.Database, Environment: environment(made)})
		<-ctx.Done()
		return nil
	})
}

func (a Appliance) serveTestTemplate(w http.ResponseWriter, r *http.Request) {
	var in NewTestTemplate
	a.inSuite(w, r, &in, func(ctx context.Context, s *suite, give func(any)) error {
		if err := databases.ValidateTemplateKey("hash", in.Hash); err != nil {
			return err
		}
		filling, err := s.Template(ctx, in.Hash)
		if err != nil {
			return err
		}
		if filling == nil {
			give(TestTemplate{Ready: true})
			return nil
		}
		id := s.addFilling(filling)
		where := environment(filling.Connection)
		give(TestTemplate{Finish: TestTemplatePath + "/" + id + "/finish", Environment: &where})
		<-ctx.Done()
		if left := s.takeFilling(id); left != nil {
			left.Abandon(ctx)
		}
		return nil
	})
}

// serveTestTemplateFinish makes a template available that its client has filled.
func (a Appliance) serveTestTemplateFinish(w http.ResponseWriter, r *http.Request) {
	a.inSuite(w, r, nil, func(ctx context.Context, s *suite, give func(any)) error {
		filling := s.takeFilling(r.PathValue("id"))
		if filling == nil {
			return model.Errorf(model.CodeNotFound, "nobody fills this template: the request that began it has ended, or it is finished")
		}
		if err := filling.Finish(ctx); err != nil {
			return err
		}
		give(TestTemplate{Ready: true})
		return nil
	})
}

// inSuite decodes a request and runs act in its suite, with a context that ends with the request or the suite.
func (a Appliance) inSuite(w http.ResponseWriter, r *http.Request, in any, act func(ctx context.Context, s *suite, give func(any)) error) {
	if in != nil {
		if err := decode(http.MaxBytesReader(w, r.Body, maxRequest), in); err != nil {
			refuse(w, model.Errorf(model.CodeValidation, "body: %v", err))
			return
		}
	}
	answer := http.NewResponseController(w)
	// The server notices that the client has gone once the body is read, and may wait for that for any time.
	_, err := io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, maxRequest))
	if err = errors.Join(err, answer.SetReadDeadline(time.Time{})); err != nil {
		refuse(w, err)
		return
	}
	s, leave, err := a.suiteOf(r)
	if err != nil {
		refuse(w, err)
		return
	}
	defer leave()
	ctx, cancel := s.during(r.Context())
	defer cancel()
	if err := act(ctx, s, func(given any) {
		w.Header().Set("Content-Type", "application/x-ndjson")
		// A client that has gone does not get it.
		_ = errors.Join(json.NewEncoder(w).Encode(given), answer.Flush())
	}); err != nil {
		refuse(w, err)
	}
}

// suiteOf returns the suite that a request names.
func (a Appliance) suiteOf(r *http.Request) (_ *suite, leave func(), err error) {
	header := r.Header.Get("Authorization")
	if header == "" {
		return a.sharedSuite(r.Context())
	}
	token, _ := strings.CutPrefix(header, "Bearer ")
	s, err := a.Leases.suite(token)
	return s, func() {}, err
}

func environment(c databases.Connection) wire.Environment {
	return api.NewConnection(c, databases.DefaultCAFile).Environment
}

// refuse writes an error as a Response.
func refuse(w http.ResponseWriter, err error) {
	response := failure(err)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(api.StatusOfError(err))
	_ = json.NewEncoder(w).Encode(response)
}
