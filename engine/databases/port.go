package databases

import (
	"errors"
	"sync"

	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// errPortClaimed means that another record took a port after it was chosen.
var errPortClaimed = errors.New("the port was claimed by another database")

// withPort calls claim with a free port, that of a warm server if there is no other. To check that no other process uses a
// port, withPort must listen on it, which a transaction may not do. So it chooses
// the port before the transaction in which claim calls claimPort, and chooses
// another if a record took the port in between.
func (s *Service) withPort(claim func(port int) error) error {
	for {
		port, release, err := s.reservePort()
		if w, ok := s.warmForPort(err); ok {
			err = s.removeWarm(w)
			if err == nil {
				continue
			}
		}
		if err != nil {
			return err
		}
		err = claim(port)
		release()
		if !errors.Is(err, errPortClaimed) {
			return err
		}
	}
}

// reservePort chooses a free port that no concurrent call gets until release is called. If others have reserved the last
// ones, it waits: their records may be refused.
func (s *Service) reservePort() (port int, release func(), err error) {
	c := s.choosing
	c.mu.Lock()
	defer c.mu.Unlock()
	for port, err = s.freePort(); err != nil; port, err = s.freePort() {
		if len(c.reserved) == 0 {
			return 0, nil, err
		}
		c.released.Wait()
	}
	c.reserved[port] = true
	return port, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.reserved, port)
		c.released.Broadcast()
	}, nil
}

// portChoice holds the ports of records that are about to be committed. Without it, creations at once would all choose
// the lowest free port, and all but one would choose again.
type portChoice struct {
	mu       sync.Mutex
	released *sync.Cond
	reserved map[int]bool
}

func newPortChoice() *portChoice {
	c := &portChoice{reserved: map[int]bool{}}
	c.released = sync.NewCond(&c.mu)
	return c
}

// warmForPort takes a warm server if its port is needed, because err says that none
// is free.
func (s *Service) warmForPort(err error) (w warmServer, ok bool) {
	if err == nil {
		return w, false
	}
	return s.warm.take()
}

// freePort returns a port that neither a record, including those in the trash, nor
// a warm server nor another process uses. The caller holds choosing.mu.
func (s *Service) freePort() (int, error) {
	databases, err := s.databasesWhere(func(model.Database) bool { return true })
	if err != nil {
		return 0, err
	}
	taken := map[int]bool{}
	for _, db := range databases {
		taken[db.Port] = true
	}
	port, err := postgres.FreePort(s.core.Config.FirstPort, s.core.Config.LastPort, s.core.Config.Listen, func(p int) bool { return taken[p] || s.choosing.reserved[p] || s.warm.hasPort(p) })
	if err != nil {
		return 0, model.Errorf(model.CodeForbidden,
			"no port between %d and %d is free for another database; the operator can widen --postgres-ports", s.core.Config.FirstPort, s.core.Config.LastPort)
	}
	return port, nil
}

// claimPort returns errPortClaimed if a record or a warm server uses the port.
func (s *Service) claimPort(tx *meta.Tx, port int) error {
	if s.warm.hasPort(port) {
		return errPortClaimed
	}
	claimed, err := tx.Databases().Where(func(db model.Database) bool { return db.Port == port })
	if len(claimed) > 0 {
		return errPortClaimed
	}
	return err
}
