package offsite

import (
	"context"
	"math/rand/v2"
	"time"

	"holdfast/engine/offsite/stream"
	"holdfast/internal/objectstore"
)

// RestoreDatabases brings the databases back into a directory, from a checkpoint that is chosen at random and the log after
// it. choose picks where the log ends: it gets the times of the frames and returns how many of them count. The files of
// the databases are fetched, each list twice.
func RestoreDatabases(ctx context.Context, at Location, dir string, choose func([]time.Time) int) error {
	c, err := connect(ctx, at, objectstore.Options{})
	if err != nil {
		return err
	}
	defer c.close()
	h, err := c.repository.History(ctx)
	if err != nil {
		return err
	}
	checkpoint, err := anyCheckpoint(ctx, h)
	if err != nil {
		return err
	}
	var frames []stream.Frame
	var times []time.Time
	for f, err := range h.Frames(ctx, checkpoint, time.Time{}) {
		if err != nil {
			return err
		}
		frames, times = append(frames, f), append(times, f.Time)
	}
	d, err := restoreDatabases(ctx, c, checkpoint, dir, frames[:choose(times)])
	if err != nil {
		return err
	}
	for owner := range d.owners {
		killed, cancel := context.WithCancel(ctx)
		_ = fetchDatabase(killed, c.repository, dir, owner, func(int64, int64) {
			if rand.IntN(3) == 0 {
				cancel()
			}
		})
		cancel()
		if err := fetchDatabase(ctx, c.repository, dir, owner, func(int64, int64) {}); err != nil {
			return err
		}
	}
	return nil
}

// NewestNames returns the names of an owner's entries of a kind in the newest checkpoint.
func NewestNames(ctx context.Context, at Location, owner, kind string) (names []string, err error) {
	c, err := connect(ctx, at, objectstore.Options{})
	if err != nil {
		return nil, err
	}
	defer c.close()
	h, err := c.repository.History(ctx)
	if err != nil {
		return nil, err
	}
	point, err := h.Find(ctx, time.Time{})
	if err != nil {
		return nil, err
	}
	for e, err := range c.repository.Catalog(ctx, point) {
		if err != nil {
			return nil, err
		}
		if e.Owner == owner && e.Kind == kind {
			names = append(names, e.Name)
		}
	}
	return names, nil
}

func anyCheckpoint(ctx context.Context, h *stream.History) (*stream.Checkpoint, error) {
	var points []stream.Point
	for p, err := range h.Points(ctx) {
		if err != nil {
			return nil, err
		}
		points = append(points, p)
	}
	return h.Find(ctx, points[rand.IntN(len(points))].Time)
}

// restoreDatabases runs the first phase twice, as after a kill.
func restoreDatabases(ctx context.Context, c *connection, checkpoint *stream.Checkpoint, dir string, frames []stream.Frame) (*databaseRestorer, error) {
	for again := true; ; again = false {
		d := newDatabaseRestorer(c.repository, dir)
		for e, err := range c.repository.Catalog(ctx, checkpoint) {
			if err != nil {
				return nil, err
			}
			if e.Kind == KindRepository || e.Kind == KindWAL {
				if err := d.entry(ctx, e); err != nil {
					return nil, err
				}
			}
		}
		for _, f := range frames {
			if kind := frameKind(f); kind == KindRepository || kind == KindWAL {
				if err := d.frame(ctx, f); err != nil {
					return nil, err
				}
			}
		}
		if err := d.finish(ctx); err != nil || !again {
			return d, err
		}
	}
}

// frameKind returns the kind of data that a frame is about.
func frameKind(f stream.Frame) string {
	switch b := f.Body.(type) {
	case stream.File:
		return b.Kind
	case stream.FileDrop:
		return b.Kind
	case stream.WAL, stream.WALFile, stream.OwnerDrop:
		return KindWAL
	}
	return ""
}

// ForgetBackups has the copy lack the backups of a database, until something of them changes.
func (s *Service) ForgetBackups(database string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.known.Names(database, KindRepository) {
		s.known.Drop(database, KindRepository, name)
	}
}
