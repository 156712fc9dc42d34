package databases

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/postgres"
)

// creationInterval is how often the databases that roles have made are counted: a burst can exceed their bound by what
// it makes in this time. Counting lists a directory.
const creationInterval = 100 * time.Millisecond

// LimitCreation stops roles from creating databases where there are as many as there may be, and lets them again where
// some were dropped, until ctx ends. PostgreSQL has no such limit, and no trigger for CREATE DATABASE.
func (s *Service) LimitCreation(ctx context.Context) {
	ticker := time.NewTicker(creationInterval)
	defer ticker.Stop()
	done := map[string]int{} // directories when the limit was last set, by id
	for {
		select {
		case <-ticker.C:
			s.limitCreation(ctx, done)
		case <-ctx.Done():
			return
		}
	}
}

func (s *Service) limitCreation(ctx context.Context, done map[string]int) {
	creating := s.Instances.Creating()
	for id := range done {
		if _, still := creating[id]; !still {
			delete(done, id)
		}
	}
	for id, dir := range creating {
		directories, err := postgres.DatabaseDirectories(dir)
		if last, known := done[id]; err == nil && known && last == directories {
			continue
		}
		if err == nil {
			err = s.limitCreationOf(ctx, id)
		}
		if err != nil {
			s.core.Log.Debug("limit the databases that roles create", "database", id, "error", err) // the next tick tries again
			delete(done, id)
			continue
		}
		done[id] = directories
	}
}

// limitPatience bounds the wait for one server, so that a full one delays the others little.
const limitPatience = 2 * time.Second

func (s *Service) limitCreationOf(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, limitPatience)
	defer cancel()
	return s.maintain(ctx, id, func(ctx context.Context, conn *pgx.Conn) error { return postgres.LimitCreation(ctx, conn) })
}
