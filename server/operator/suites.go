package operator

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"sync"

	"holdfast/engine/databases"
	"holdfast/engine/model"
)

// suite is the suite of a sandbox that is held, and what clients do in it.
type suite struct {
	*databases.Suite
	ctx    context.Context // ends when the sandbox is about to be removed
	cancel context.CancelFunc

	mu       sync.Mutex
	fillings map[string]*databases.Filling // by id
}

func newSuite(s *databases.Suite) *suite {
	made := &suite{Suite: s, fillings: map[string]*databases.Filling{}}
	made.ctx, made.cancel = context.WithCancel(context.Background())
	return made
}

// close ends all requests in the suite.
func (s *suite) close() {
	s.Close()
	s.cancel()
}

// during returns a context that ends with ctx or with the suite.
func (s *suite) during(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.ctx, cancel)
	return ctx, func() { stop(); cancel() }
}

// addFilling returns an id for the filling. One caller of takeFilling gets it, and ends it.
func (s *suite) addFilling(f *databases.Filling) (id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id = rand.Text()
	s.fillings[id] = f
	return id
}

func (s *suite) takeFilling(id string) *databases.Filling {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.fillings[id]
	delete(s.fillings, id)
	return f
}

// tokenHash is what a suite is found by: a comparison of tokens themselves would take
// longer the more bytes are right.
type tokenHash [sha256.Size]byte

// openSuite lets whoever has the token use the suite of a sandbox until close is called.
func (l *Leases) openSuite(s *databases.Suite) (token string, close func()) {
	token = rand.Text()
	made, key := newSuite(s), tokenHash(sha256.Sum256([]byte(token)))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.suites[key] = made
	return token, func() {
		l.mu.Lock()
		delete(l.suites, key)
		l.mu.Unlock()
		made.close()
	}
}

// errNoSandbox refuses a token.
var errNoSandbox = model.Errorf(model.CodeUnauthorized, "no sandbox has this token; it may have ended")

func (l *Leases) suite(token string) (*suite, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, known := l.suites[sha256.Sum256([]byte(token))]
	if !known {
		return nil, errNoSandbox
	}
	return s, nil
}
