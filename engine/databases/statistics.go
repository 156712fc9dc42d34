package databases

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/backup/wal/xlog"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// Statistics is the last sample of an instance.
type Statistics struct {
	At time.Time
	postgres.Usage
	// WALLag is how many bytes of flushed WAL are not in the archive. RPO is how much
	// time would be lost if the server were lost, nil while no WAL is received.
	WALLag int64
	RPO    *time.Duration
	// Slots are the replication slots of clients.
	Slots []postgres.Slot
}

// StatisticsCache holds the newest statistics of each database, so that reading a
// database needs no session.
type StatisticsCache struct{ newest sync.Map } // database id to Statistics

// Get returns the newest statistics of a database, false if there are none.
func (s *StatisticsCache) Get(id string) (Statistics, bool) {
	found, _ := s.newest.Load(id)
	newest, ok := found.(Statistics)
	return newest, ok
}

// SampleAll samples every running instance.
func (s *Service) SampleAll(ctx context.Context) {
	databases, err := s.KeptDatabases()
	if err != nil {
		s.core.Log.Error("list databases to sample", "error", err)
		return
	}
	for _, db := range databases {
		if state, _, _ := s.Instances.Status(db.ID); state == postgres.StateRunning {
			s.SampleOne(ctx, db)
		}
	}
}

// SampleOne samples one instance. If it does not answer, the old statistics remain.
func (s *Service) SampleOne(ctx context.Context, db model.Database) {
	s.sample(ctx, db, func(ctx context.Context, conn *pgx.Conn) { s.noteSession(ctx, conn, db) })
}

// sampleNew samples the instance of a new database, of which nothing else can be noted yet, after the other creations
// of a burst and unless it has been sampled meanwhile.
func (s *Service) sampleNew(ctx context.Context, db model.Database) {
	if s.awaitCalm(ctx) != nil {
		return
	}
	if _, sampled := s.Statistics.Get(db.ID); sampled {
		return
	}
	s.sample(ctx, db, func(context.Context, *pgx.Conn) {})
}

// noteSession records what a session shows besides statistics: the server's version
// and the passwords in force.
func (s *Service) noteSession(ctx context.Context, conn *pgx.Conn, db model.Database) {
	if err := s.noteVersion(db, postgres.ServerVersion(conn)); err != nil {
		s.core.Log.Error("record the server's version", "database", db.ID, "error", err)
	}
	if _, err := s.notePasswords(ctx, conn, db); err != nil {
		s.core.Log.Debug("check the passwords of a database", "database", db.ID, "error", err)
	}
	if err := s.endReadersPrepared(ctx, conn, db); err != nil {
		s.core.Log.Debug("end prepared transactions of a database", "database", db.ID, "error", err)
	}
	if err := s.boundStatements(ctx, conn, db); err != nil {
		s.core.Log.Debug("forget the statements of a database", "database", db.ID, "error", err)
	}
}

// statementTexts bounds the texts of the statements that a server counts, in bytes. PostgreSQL does not, and reads them all
// at each look; every role can send statements of any length.
const statementTexts = 32 << 20

// boundStatements forgets what is counted of statements if their texts take too much.
func (s *Service) boundStatements(ctx context.Context, conn *pgx.Conn, db model.Database) error {
	info, err := os.Stat(filepath.Join(s.DataDirectory(db.ID, db.Generation), postgres.StatementTexts))
	if err != nil || info.Size() <= statementTexts { // without pg_stat_statements there is none
		return nil
	}
	s.core.Log.Warn("the statistics of statements are reset, because the texts of the statements take too much", "database", db.ID, "name", db.Name, "bytes", info.Size())
	_, err = conn.Exec(ctx, "select public.pg_stat_statements_reset()")
	return err
}

// readersPrepared is how long a role that only reads may leave a transaction
// prepared: as long as it may leave one idle in a session.
const readersPrepared = 10 * time.Minute

func (s *Service) endReadersPrepared(ctx context.Context, conn *pgx.Conn, db model.Database) error {
	tenant, err := s.tenant(db)
	if err != nil {
		return err
	}
	return tenant.EndReadersPrepared(ctx, conn, readersPrepared)
}

// sample calls first with a session, and takes the statistics.
func (s *Service) sample(ctx context.Context, db model.Database, first func(context.Context, *pgx.Conn)) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn, err := s.Instances.Connect(ctx, db.ID, Maintenance)
	if err != nil {
		s.core.Log.Debug("sample database", "database", db.ID, "error", err)
		return
	}
	defer conn.Close(context.WithoutCancel(ctx))
	first(ctx, conn)
	stats, err := postgres.Stats(ctx, conn, db.Name)
	if err != nil {
		s.core.Log.Debug("sample database", "database", db.ID, "error", err)
		return
	}
	now := Statistics{At: s.core.Clock(), Usage: stats}
	if archive, receives := s.backups.WALStatus(db.ID); receives {
		rpo := archive.RPO(now.At)
		now.RPO = &rpo
		if flushed, err := xlog.ParseLSN(stats.Flushed); err == nil {
			now.WALLag = max(0, int64(flushed)-int64(archive.Durable))
		}
	}
	if now.Slots, err = postgres.Slots(ctx, conn, WALSlot); err != nil {
		s.core.Log.Debug("sample replication slots", "database", db.ID, "error", err)
	}
	if db, err = s.Record(db.ID); err != nil {
		return // deleted meanwhile
	}
	s.watchSlots(ctx, conn, db, now.Slots)
	s.Statistics.newest.Store(db.ID, now)
	s.samples.observe(db.ID, now)
}

// noteVersion records the version of the server, which changes with a minor release
// of the binaries.
func (s *Service) noteVersion(db model.Database, version string) error {
	if version == db.Version {
		return nil
	}
	return s.core.Meta.Update(func(tx *meta.Tx) error {
		return tx.Databases().Change(db.ID, func(d *model.Database) { d.Version = version })
	})
}
