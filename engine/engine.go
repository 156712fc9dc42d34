package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/engine/access"
	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/imports"
	"holdfast/engine/insight"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/objects"
	"holdfast/engine/offsite"
	"holdfast/engine/postgres/binaries"
	"holdfast/engine/recovery"
	"holdfast/engine/webhooks"
)

// Engine combines the appliance's services: no other type knows all of them. After Open it can read and change metadata
// and objects; Start brings up PostgreSQL.
type Engine struct {
	Core      *core.Core
	Access    *access.Service
	Objects   *objects.Service
	Databases *databases.Service
	Recovery  *recovery.Service
	Imports   *imports.Service
	Insight   *insight.Service
	Offsite   *offsite.Service
	Webhooks  *webhooks.Service

	unlock func() error // releases the data directory
	// quarantining is set while what older metadata do not know is not in quarantine yet.
	quarantining atomic.Bool
	sweeping     sync.Mutex // held while a sweep runs
}

// Open locks the data directory, which no other appliance, recovery or import may be using, and opens its metadata and
// objects. The caller closes the Engine.
func Open(cfg core.Config) (*Engine, error) {
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	unlock, err := lockDirectory(cfg.DataDir)
	if err != nil {
		return nil, err
	}
	e, err := openLocked(cfg)
	if err != nil {
		return nil, errors.Join(err, unlock())
	}
	e.unlock = unlock
	return e, nil
}

func openLocked(cfg core.Config) (*Engine, error) {
	if err := errors.Join(finishImport(cfg.DataDir), offsite.RefuseUnfinished(cfg.DataDir), core.RefuseWithoutMetadata(cfg.DataDir)); err != nil {
		return nil, err
	}
	db, err := meta.Open(filepath.Join(cfg.DataDir, core.MetadataFile))
	if err != nil {
		return nil, err
	}
	e, err := open(cfg, db)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return e, nil
}

func open(cfg core.Config, db *meta.DB) (*Engine, error) {
	c, err := core.New(cfg, db)
	if err != nil {
		return nil, err
	}
	e := &Engine{Core: c, Access: access.New(c), Objects: objects.New(c), Databases: databases.New(c)}
	e.Recovery = recovery.New(c, e.Databases)
	e.Imports = imports.New(c, e.Databases)
	e.Databases.Connect(e.Recovery, e.Imports)
	e.Offsite, err = offsite.New(c, e.Databases, e.Objects, e.Recovery)
	if err != nil {
		return nil, err
	}
	if e.Webhooks, err = webhooks.New(c); err != nil {
		return nil, err
	}
	if err := e.Objects.Open(); err != nil {
		return nil, err
	}
	e.Insight = insight.New(c, e.Access, e.Databases, e.Recovery, e.Imports, e.Offsite)
	if err := c.Begin(); err != nil {
		return nil, errors.Join(err, c.Blobs.Close())
	}
	return e, nil
}

// Start finds PostgreSQL, recovers from a crash and starts every database. It
// returns once the appliance can serve; slow databases continue to start in the
// background.
func (e *Engine) Start(ctx context.Context) error {
	if err := e.releaseReserve(); err != nil {
		return err
	}
	for _, name := range []string{"tls", "instances", "backups", recovery.VerificationDirectory, "warm", "postgres"} {
		if err := os.MkdirAll(filepath.Join(e.Core.Config.DataDir, name), 0o700); err != nil {
			return fmt.Errorf("make directory: %w", err)
		}
	}
	if err := os.RemoveAll(filepath.Join(e.Core.Config.DataDir, movingDir)); err != nil {
		return fmt.Errorf("clear an export that was cut off: %w", err)
	}
	order, err := e.Offsite.ContinueRecovery(ctx, e.Objects)
	if err != nil {
		return err
	}
	if err := e.Databases.StartPostgres(ctx); err != nil {
		return err
	}
	if err := e.Core.BeginRetentions(); err != nil {
		return err
	}
	older, err := e.isOlder()
	if err != nil {
		return err
	}
	e.quarantining.Store(older)
	e.Databases.OlderMetadata = older
	err = e.recover()
	e.Databases.OlderMetadata = false
	if err != nil {
		return err
	}
	e.tryNoteCommits()
	if err := e.Access.WarnOfUnknownPlans(); err != nil {
		return err
	}
	starts, err := e.Databases.ClaimStarts(order)
	if err != nil {
		return err
	}
	if err := e.Imports.Resume(); err != nil {
		return err
	}
	e.Databases.WarmPool.Start()
	e.Core.Background(e.Databases.KeepWarm)
	e.Core.Background(e.Databases.LetSleep)
	e.Core.Background(e.Databases.LimitCreation)
	e.Core.Background(func(ctx context.Context) {
		e.Databases.StartDatabases(ctx, starts)
		e.Offsite.FinishRecovery(ctx)
	})
	e.Core.Background(e.Insight.Sample)
	e.Core.Background(e.sweep)
	e.Core.Background(e.Recovery.ScheduleBackups)
	for range recovery.ExportsAtOnce {
		e.Core.Background(func(ctx context.Context) {
			e.Recovery.Exports.Serve(ctx, recovery.ExportInterval, e.Recovery.MakeNextExport)
		})
	}
	if e.Core.Config.VerifyBackups {
		e.Core.Background(func(ctx context.Context) {
			e.Recovery.Verifications.Serve(ctx, recovery.VerificationInterval, e.Recovery.VerifyNext)
		})
	}
	e.Core.Background(e.Insight.Advise)
	e.Core.Background(func(ctx context.Context) { e.reconcileBlobs(ctx, older) })
	if err := e.Objects.ResumeRestores(); err != nil {
		return fmt.Errorf("resume the restores of buckets: %w", err)
	}
	e.Core.Background(e.Objects.Compact)
	e.Core.Background(e.Objects.Scrub)
	e.Core.Background(e.Webhooks.Run)
	e.Offsite.Start()
	e.Core.Finish(e.Core.System(model.ActionApplianceStart, "", model.Resource{}), nil)
	return nil
}

// Binaries returns the PostgreSQL binaries found. It is set once Start returned.
func (e *Engine) Binaries() binaries.Set { return e.Databases.Binaries }

// Now returns the time of the engine's clock.
func (e *Engine) Now() time.Time { return e.Core.Clock() }

// SocketDir returns the private directory of the sockets. It is set once Start
// returned.
func (e *Engine) SocketDir() string { return e.Databases.SocketDir }

// Close stops everything in an order that loses nothing acknowledged: running operations are cancelled and leave a
// state that the next start recovers, then the instances stop and the rest of their WAL is archived, then the audit queue
// is written and the copy off-site completed, then the files are closed. Close may be called twice.
func (e *Engine) Close(ctx context.Context) error {
	again := e.Core.Lifetime.Err() != nil
	e.Core.Stop()
	e.Core.Work.Wait()
	var errs []error
	e.Databases.ClosePools()
	errs = append(errs, e.Databases.CloseProxies())
	received, err := e.Recovery.CloseReceivers()
	errs = append(errs, err)
	if e.Databases.Instances != nil {
		errs = append(errs, e.Databases.Instances.Close(ctx))
		e.Recovery.ArchiveRest(received)
	}
	if e.Databases.Started() && !again {
		e.Core.Finish(e.Core.System(model.ActionApplianceStop, "", model.Resource{}), nil)
	}
	e.Core.Audits.Add(e.Core.Coalescer.End()...)
	e.Core.Audits.Close()
	if e.Databases.Started() && !again {
		e.tryNoteCommits()
	}
	e.Offsite.Close(ctx)
	errs = append(errs, e.Recovery.CloseArchives(), e.Core.Blobs.Close(), e.Core.Meta.Close(), e.unlock())
	return errors.Join(errs...)
}
