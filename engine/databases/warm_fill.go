package databases

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/certificates"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
	"holdfast/internal/durable"
)

const (
	// warmPause is how long creations must have left the machine alone before
	// anything is prepared for the next ones.
	warmPause = 100 * time.Millisecond
	// warmRetry is the pause after a failure, or for lack of free space or a port.
	warmRetry = 5 * time.Second
)

// KeepWarm adopts the warm servers that an earlier appliance left, and makes new
// ones, until ctx ends. It gives way to creations.
func (s *Service) KeepWarm(ctx context.Context) {
	for s.awaitCalm(ctx) == nil {
		var err error
		if w, ok := s.warm.nextFound(); ok {
			err = s.adoptWarm(ctx, w)
		} else if _, all := s.warm.count(); all >= s.core.Config.Warm {
			select {
			case <-s.warm.wake:
			case <-ctx.Done():
			}
		} else if s.core.ReadOnly() != nil || !s.core.FreeSpaceForWarmPool() {
			_ = wait(ctx, warmRetry)
		} else {
			err = s.makeWarm(ctx)
		}
		if err != nil && ctx.Err() == nil {
			s.core.Log.Warn("make a warm server", "error", err)
			_ = wait(ctx, warmRetry)
		}
	}
}

// awaitCalm waits until no creation has run for warmPause.
func (s *Service) awaitCalm(ctx context.Context) error {
	for {
		left := s.warm.calm(warmPause)
		if left <= 0 {
			return ctx.Err()
		}
		if err := wait(ctx, left); err != nil {
			return err
		}
	}
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// makeWarm makes a warm server from a prepared directory. The note comes first: what
// a crash leaves has one.
func (s *Service) makeWarm(ctx context.Context) error {
	w, err := s.planWarm()
	if err != nil {
		return err
	}
	err = durable.WriteFile(s.notePath(w), nil, 0o600)
	if err == nil {
		err = os.MkdirAll(s.DatabaseDirectory(w.id), 0o700)
	}
	if err == nil {
		err = s.WarmPool.Take(ctx, s.DataDirectory(w.id, 1))
	}
	if err == nil {
		err = s.IssueCertificate(s.DataDirectory(w.id, 1))
	}
	if err == nil {
		err = s.startWarm(ctx, w)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("make %s: %w", w.id, err), s.removeWarm(w))
	}
	return nil
}

// planWarm chooses an id and a port. The port is reserved here before the records
// are read, and a record that claims a port reads the reservations in its
// transaction: one of both sees the other.
func (s *Service) planWarm() (warmServer, error) {
	port, release, err := s.reservePort()
	if err != nil {
		return warmServer{}, err
	}
	defer release()
	w := warmServer{id: s.core.NewID(model.ResourceDatabase), port: port, version: s.Binaries.Version}
	s.warm.add(w)
	claimed, err := s.databasesWhere(func(db model.Database) bool { return db.Port == port })
	if err == nil && len(claimed) > 0 {
		err = errPortClaimed
	}
	if err != nil {
		s.warm.forget(w.id)
	}
	return w, err
}

// adoptWarm makes a warm server of an earlier appliance ready, or removes it.
func (s *Service) adoptWarm(ctx context.Context, w warmServer) error {
	dir := s.DataDirectory(w.id, 1)
	certificate, err := certificates.Read(certificates.InDataDirectory(dir))
	if err != nil || !s.isCurrent(certificate) {
		err = s.IssueCertificate(dir)
	}
	if err == nil {
		err = s.startWarm(ctx, w)
	}
	switch {
	case err == nil || ctx.Err() != nil:
		return err // the next appliance tries again
	default:
		s.core.Log.Info("removing a warm server that cannot be adopted", "database", w.id, "error", err)
		return s.removeWarm(w)
	}
}

// startWarm starts or adopts the server and checks that nothing has used it.
func (s *Service) startWarm(ctx context.Context, w warmServer) error {
	ctx, cancel := context.WithTimeout(ctx, s.Timeouts.Start)
	defer cancel()
	db := s.warmRecord(w)
	spec, err := s.Spec(ctx, db)
	if err != nil {
		return err
	}
	keepDefaults(spec.Config.Settings, db, spec.Dir)
	if err := s.Instances.Start(ctx, spec); err != nil {
		return err
	}
	err = s.maintain(ctx, w.id, func(ctx context.Context, conn *pgx.Conn) (err error) {
		w.loaded, err = postgres.CheckPrepared(ctx, conn)
		return err
	})
	if err != nil {
		return err
	}
	s.warm.put(w)
	return nil
}

// removeWarm stops a warm server and removes everything of it, the note last.
func (s *Service) removeWarm(w warmServer) error {
	defer s.warm.forget(w.id)
	ctx, cancel := context.WithTimeout(context.Background(), s.Timeouts.Stop)
	defer cancel()
	err := s.Instances.Stop(ctx, w.id)
	if errors.Is(err, postgres.ErrUnknownInstance) {
		err = postgres.KillOrphan(ctx, s.Majors.Find, s.DataDirectory(w.id, 1))
	}
	s.States.Drop(w.id)
	if err == nil {
		err = RemoveDirectory(s.DatabaseDirectory(w.id))
	}
	if err != nil {
		return fmt.Errorf("remove warm server %s: %w", w.id, err)
	}
	return s.removeNote(w)
}

func (s *Service) removeNote(w warmServer) error {
	if err := os.Remove(s.notePath(w)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove the note of a warm server: %w", err)
	}
	return nil
}

// recoverWarm reads the notes of an earlier appliance. It runs after interrupted
// creations were undone. What has become a database loses its note. Others are kept
// for adoption, or removed: those of another version, on ports that are not for databases any more, or more than are wanted. Older
// metadata may lack the record of a database, so nothing is kept then: a directory
// without a record is quarantined.
func (s *Service) recoverWarm() error {
	entries, err := os.ReadDir(s.warmDirectory())
	if err != nil {
		return fmt.Errorf("list the warm pool: %w", err)
	}
	for _, entry := range entries {
		if w, ok := parseNote(entry.Name()); ok {
			if err := s.recoverNote(w); err != nil {
				s.core.Log.Error("recover a warm server", "database", w.id, "error", err)
			}
		}
	}
	return nil
}

func (s *Service) recoverNote(w warmServer) error {
	_, err := s.Record(w.id)
	switch {
	case err == nil || s.OlderMetadata:
		return s.removeNote(w)
	case !errors.Is(err, meta.ErrNotFound):
		return err
	}
	_, kept := s.warm.count()
	allowed := w.port >= s.core.Config.FirstPort && w.port <= s.core.Config.LastPort
	if _, err := os.Lstat(s.DataDirectory(w.id, 1)); err != nil || w.version != s.Binaries.Version || !allowed || kept >= s.core.Config.Warm || s.core.ReadOnly() != nil {
		return s.removeWarm(w)
	}
	s.warm.mu.Lock()
	defer s.warm.mu.Unlock()
	s.warm.ports[w.id] = w.port
	s.warm.found = append(s.warm.found, w)
	return nil
}
