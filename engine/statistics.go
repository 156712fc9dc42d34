package engine

import (
	"context"
	"sync"
	"time"

	"holdfast/backup/wal/xlog"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// sampleInterval is how often every instance is asked for its statistics.
const sampleInterval = 15 * time.Second

// Statistics is what an instance last said of itself.
type Statistics struct {
	At          time.Time
	SizeBytes   int64
	Connections int
	SSL, NonSSL int   // of Connections
	Commits     int64 // a counter
	// WALLag is how many bytes of flushed WAL the archive has not, and RPO how much
	// of the past would be missing if the server were lost; nil while nothing
	// receives its WAL.
	WALLag int64
	RPO    *time.Duration
}

// statistics holds the newest figures of each database, so that reading a
// database costs no session of its own.
type statistics struct {
	mu     sync.RWMutex
	newest map[string]Statistics
}

func newStatistics() *statistics { return &statistics{newest: map[string]Statistics{}} }

func (s *statistics) get(id string) (Statistics, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	found, ok := s.newest[id]
	return found, ok
}

func (s *statistics) put(id string, st Statistics) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.newest[id] = st
}

func (s *statistics) drop(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.newest, id)
}

// sample keeps the statistics fresh until ctx ends.
func (e *Engine) sample(ctx context.Context) {
	ticker := time.NewTicker(sampleInterval)
	defer ticker.Stop()
	diskTold := false
	for {
		select {
		case <-ticker.C:
			e.sampleAll(ctx)
			e.keepMetrics(false)
			diskTold = e.watchDisk(diskTold)
		case <-ctx.Done():
			e.keepMetrics(true)
			return
		}
	}
}

func (e *Engine) sampleAll(ctx context.Context) {
	databases, err := e.keptDatabases()
	if err != nil {
		e.log.Error("list databases to sample", "error", err)
		return
	}
	for _, db := range databases {
		if state, _, _ := e.instances.Status(db.ID); state == postgres.StateRunning {
			e.sampleOne(ctx, db)
		}
	}
}

// sampleOne asks one instance; one that does not answer keeps its old figures.
func (e *Engine) sampleOne(ctx context.Context, db model.Database) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn, err := e.instances.Connect(ctx, db.ID, maintenance)
	if err != nil {
		e.log.Debug("sample database", "database", db.ID, "error", err)
		return
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := e.noteVersion(db, postgres.ServerVersion(conn)); err != nil {
		e.log.Error("record the server's version", "database", db.ID, "error", err)
	}
	if _, err := e.notePasswords(ctx, conn, db); err != nil {
		e.log.Debug("check the passwords of a database", "database", db.ID, "error", err)
	}
	stats, err := postgres.Stats(ctx, conn, db.Name)
	if err != nil {
		e.log.Debug("sample database", "database", db.ID, "error", err)
		return
	}
	now := Statistics{
		At: e.clock(), SizeBytes: stats.SizeBytes, Connections: stats.Connections, SSL: stats.SSL, NonSSL: stats.NonSSL,
		Commits: stats.Commits,
	}
	if archive, receives := e.backups.WALStatus(db.ID); receives {
		rpo := archive.RPO(now.At)
		now.RPO = &rpo
		if flushed, err := xlog.ParseLSN(stats.Flushed); err == nil {
			now.WALLag = max(0, int64(flushed)-int64(archive.Durable))
		}
	}
	e.stats.put(db.ID, now)
	e.metrics.observe(db.ID, now)
}

// noteVersion records the version of the server, which another minor release
// of the binaries changes.
func (e *Engine) noteVersion(db model.Database, version string) error {
	if version == db.Version {
		return nil
	}
	return e.meta.Update(func(tx *meta.Tx) error {
		_, err := tx.Databases().Update(db.ID, func(d *model.Database) error {
			d.Version = version
			return nil
		})
		return err
	})
}

// keptDatabases returns the databases that do not lie in the trash.
func (e *Engine) keptDatabases() ([]model.Database, error) {
	var databases []model.Database
	err := e.meta.View(func(tx *meta.Tx) error {
		return tx.Databases().All(func(db model.Database) error {
			if db.Trash == nil {
				databases = append(databases, db)
			}
			return nil
		})
	})
	return databases, err
}

// keepMetrics writes the steps of the metrics that are over, or all.
func (e *Engine) keepMetrics(all bool) {
	if err := e.writeMetrics(e.metrics.take(all)); err != nil {
		e.log.Error("write metrics", "error", err)
	}
}
