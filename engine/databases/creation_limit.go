package databases

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/postgres"
)

// creationInterval is how often the databases that roles have made are counted: a burst can exceed their bound by what
// it makes in this time. Counting lists a directory.
const creationInterval = 100 * time.Millisecond

// LimitCreation stops roles from creating databases where there are as many as there may be, and lets them again where
// some were dropped, until ctx ends. PostgreSQL has no such limit, and no trigger for CREATE DATABASE. A server that does
// not answer delays no other.
func (s *Service) LimitCreation(ctx context.Context) {
	ticker := time.NewTicker(creationInterval)
	defer ticker.Stop()
	limits := creationLimits{set: map[string]int{}, asked: map[string]bool{}}
	var asking sync.WaitGroup
	defer asking.Wait()
	for {
		select {
		case <-ticker.C:
			for id, directories := range limits.due(s.Instances.Creating()) {
				asking.Go(func() { limits.end(id, directories, s.limitCreationOf(ctx, id)) })
			}
		case <-ctx.Done():
			return
		}
	}
}

// creationLimits is what is known of the servers on which roles create databases, by id.
type creationLimits struct {
	mu    sync.Mutex
	set   map[string]int  // number of directories when the limit was last set
	asked map[string]bool // servers that have not answered yet
}

// due returns the servers whose limit is to be set, with the number of their databases' directories, and counts them as
// asked. creating are the data directories of all.
func (l *creationLimits) due(creating map[string]string) map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.set, func(id string, _ int) bool { return creating[id] == "" })
	due := map[string]int{}
	for id, dir := range creating {
		directories, err := postgres.DatabaseDirectories(dir)
		if set, known := l.set[id]; err == nil && !l.asked[id] && (!known || set != directories) {
			due[id], l.asked[id] = directories, true
		}
	}
	return due
}

// end records the answer of a server. One that failed is asked again.
func (l *creationLimits) end(id string, directories int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.asked, id)
	if err == nil {
		l.set[id] = directories
	} else {
		delete(l.set, id)
	}
}

// limitPatience bounds the wait for one server.
const limitPatience = 2 * time.Second

func (s *Service) limitCreationOf(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, limitPatience)
	defer cancel()
	err := s.maintain(ctx, id, func(ctx context.Context, conn *pgx.Conn) error { return postgres.LimitCreation(ctx, conn) })
	if err != nil {
		s.core.Log.Debug("limit the databases that roles create", "database", id, "error", err)
	}
	return err
}
