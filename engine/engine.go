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

	"holdfast/blobstore"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// ballast is memory, in bytes, that is never written to, so that the system
// never provides it. The garbage collector counts it as live and so waits for
// as much garbage again. Little else is live in an appliance. With it uploads of
// 1 KiB by 32 clients take 0.76 to 0.89 of the processor time, and the process
// has 17 MB more at its peak (docs/decisions/0010-tricks.md).
const ballast = 16 << 20

// Engine holds the appliance's parts together. Open gives one that can read
// and change metadata and objects; Start brings up PostgreSQL.
type Engine struct {
	cfg      Config
	log      *slog.Logger
	clock    func() time.Time
	guard    clockGuard
	meta     *meta.DB
	blobs    *blobstore.Store
	sealer   sealer
	signer   signer
	auditKey []byte
	ids      *idSource
	audits   *auditQueue
	folds    *auditFold
	rates    *rateLimiter
	claims   *claims
	stats    *statistics
	done     *progress
	cancels  *cancels
	exports  nudges
	proofs   nudges
	imports  *runningImports
	metrics  *metrics
	once     onceSet
	adviser  *adviser
	reserved *reservations
	room     *uploadRoom
	// visitors limits what needs no key, by address and account.
	visitors  *rateLimiter
	passwords *passwords

	// keep is held for writing while nothing may be removed that a record of
	// now names, for reading while something is.
	keep sync.RWMutex

	sweeping sync.Mutex // held by who sweeps

	archives *archives
	recent   *recentObjects
	order    *objectLocks
	unlinks  chan struct{} // has one while unlinking is about to begin
	older    bool          // while a start settles with older metadata
	opened   atomic.Bool   // that blobs is set: replaying the journal comes before
	ballast  []byte

	// What follows is there once Start has returned.
	binaries  postgres.Binaries // for new databases
	majors    *majors
	dumps     toolSearch // for pg_dump
	ca        postgres.CA
	socketDir string
	instances *postgres.Supervisor
	spares    *postgres.Spares
	states    *instanceStates
	verifiers *knownVerifiers
	waits     waits
	turns     chan struct{} // holds one for each scheduled backup under way

	backups Backups
	running Imports

	apiCertificate sync.Mutex // held while the API's certificate is issued

	// ctx ends when Close begins; work counts what runs by itself.
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup
}

// Open opens the data directory's metadata and objects, which must not be in
// use by another process. The caller closes the Engine.
func Open(cfg Config) (*Engine, error) {
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if err := errors.Join(refuseHalfArrived(cfg.DataDir), refuseWithoutMetadata(cfg.DataDir)); err != nil {
		return nil, err
	}
	db, err := meta.Open(filepath.Join(cfg.DataDir, metadataFile))
	if err != nil {
		return nil, err
	}
	if m := db.Migrated; m != nil {
		cfg.Log.Info("the metadata were brought to this version's format", "from", m.From, "to", meta.Format, "copy", m.Copy)
	}
	e, err := open(cfg, db)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return e, nil
}

func open(cfg Config, db *meta.DB) (*Engine, error) {
	if err := refuseWithoutKey(cfg.DataDir, db); err != nil {
		return nil, err
	}
	sealer, err := loadSealer(filepath.Join(cfg.DataDir, keyFile))
	if err != nil {
		return nil, err
	}
	e := &Engine{
		cfg: cfg, log: cfg.Log, meta: db, sealer: sealer,
		clock:     func() time.Time { return cfg.Clock().UTC() },
		signer:    sealer.signer(),
		auditKey:  sealer.derive("holdfast audit chain"),
		ids:       newIDSource(),
		rates:     newRateLimiter(cfg.Rates),
		claims:    newClaims(),
		stats:     newStatistics(),
		done:      newProgress(),
		adviser:   newAdviser(),
		reserved:  newReservations(),
		cancels:   newCancels(),
		exports:   newNudges(),
		proofs:    newNudges(),
		recent:    newRecentObjects(),
		order:     newObjectLocks(),
		unlinks:   make(chan struct{}, 1),
		imports:   newRunningImports(),
		states:    newInstanceStates(),
		verifiers: newKnownVerifiers(),
		waits:     defaultWaits(),
		turns:     make(chan struct{}, backupTurns),
		metrics:   newMetrics(),

		visitors:  newRateLimiter(visitorRates()),
		passwords: newPasswords(),

		archives: newArchives(),
		ballast:  make([]byte, ballast),
	}
	e.backups, e.running = e, e.imports
	blobs := filepath.Join(cfg.DataDir, "blobs")
	e.room = newUploadRoom(cfg.DataDir, blobs)
	e.ctx, e.cancel = context.WithCancel(context.Background())
	e.blobs, err = blobstore.Open(blobs, blobstore.Options{
		After: blobstore.Position(db.Applied()), Deliver: e.deliver, Damaged: e.passOver,
	})
	if err != nil {
		return nil, fmt.Errorf("open blob store: %w", err)
	}
	if err := e.loadClock(); err != nil {
		return nil, errors.Join(err, e.blobs.Close())
	}
	e.opened.Store(true)
	e.audits, e.folds = startAuditQueue(e), newAuditFold()
	return e, nil
}

// Start finds PostgreSQL, settles what a crash left unfinished, and brings up
// every database. It returns once the appliance can serve; databases that are
// slow to start come up behind it.
func (e *Engine) Start(ctx context.Context) error {
	for _, name := range []string{"tls", "instances", "backups", proofsDir, "spares", "postgres"} {
		if err := os.MkdirAll(filepath.Join(e.cfg.DataDir, name), 0o700); err != nil {
			return fmt.Errorf("make directory: %w", err)
		}
	}
	if err := os.RemoveAll(filepath.Join(e.cfg.DataDir, movingDir)); err != nil {
		return fmt.Errorf("clear an export that was cut off: %w", err)
	}
	if err := e.startPostgres(ctx); err != nil {
		return err
	}
	older, err := e.isOlder()
	if err != nil {
		return err
	}
	e.older = older
	err = e.settle()
	e.older = false
	if err != nil {
		return err
	}
	e.tryNoteCommits()
	if err := e.warnOfUnknownPlans(); err != nil {
		return err
	}
	started, err := e.fileTime() // before anybody can upload
	if err != nil {
		return err
	}
	starts, err := e.claimStarts()
	if err != nil {
		return err
	}
	e.spares.Start()
	e.background(func(ctx context.Context) { e.startDatabases(ctx, starts) })
	e.background(e.sample)
	e.background(e.sweep)
	e.background(e.scheduleBackups)
	for range exportsAtOnce {
		e.background(func(ctx context.Context) { e.exports.serve(ctx, exportInterval, e.makeNextExport) })
	}
	if e.cfg.Proofs {
		e.background(func(ctx context.Context) { e.proofs.serve(ctx, proofInterval, e.proveNext) })
	}
	e.background(e.advise)
	e.background(func(ctx context.Context) { e.reconcileBlobs(ctx, started, older) })
	e.background(e.compact)
	e.background(e.scrub)
	e.Finish(e.system(model.ActionApplianceStart, "", model.Resource{}), nil)
	return nil
}

func (e *Engine) startPostgres(ctx context.Context) error {
	var err error
	if e.binaries, err = e.cfg.Search.Find(ctx); err != nil {
		return fmt.Errorf("find PostgreSQL: %w", err)
	}
	e.majors = newMajors(e.cfg.Search, e.binaries)
	if err := e.loadAuthority(); err != nil {
		return fmt.Errorf("load certificate authority: %w", err)
	}
	if e.socketDir, err = postgres.SocketDir(e.cfg.DataDir); err != nil {
		return fmt.Errorf("make socket directory: %w", err)
	}
	e.instances = postgres.NewSupervisor(postgres.SupervisorOptions{
		Log: e.log, Changed: e.instanceChanged, PortTaken: e.portTaken,
	})
	e.spares, err = postgres.NewSpares(postgres.SparesOptions{
		Dir:       filepath.Join(e.cfg.DataDir, "spares"),
		Want:      e.cfg.Spares,
		Bin:       e.binaries,
		SocketDir: e.socketDir,
		Log:       e.log,
		Room:      e.roomForSpares,
	})
	if err != nil {
		return fmt.Errorf("open spares: %w", err)
	}
	return nil
}

// Binaries returns which PostgreSQL was found. It is set once Start returned.
func (e *Engine) Binaries() postgres.Binaries { return e.binaries }

// About is the appliance itself, for people to see.
type About struct {
	Version   string
	DataDir   string
	Binaries  postgres.Binaries
	AuditKeep uint64
	Proofs    bool          // whether backups are proven
	Trash     time.Duration // how long deleted databases are kept
	Objects   time.Duration // how long deleted objects are kept, 0 for not at all
	Replaced  time.Duration // how long data that a restore replaced is kept
}

// About returns what the appliance is and how it was set up. It is whole once
// Start returned.
func (e *Engine) About() About {
	return About{
		Version: e.cfg.Version, DataDir: e.cfg.DataDir, Binaries: e.binaries, AuditKeep: e.cfg.AuditKeep,
		Proofs: e.cfg.Proofs, Trash: e.cfg.TrashRetention, Objects: e.cfg.ObjectTrashRetention, Replaced: e.cfg.ReplacedRetention,
	}
}

// Now is the time by the engine's clock.
func (e *Engine) Now() time.Time { return e.clock() }

// SocketDir returns the private directory of the sockets. It is set once Start
// returned.
func (e *Engine) SocketDir() string { return e.socketDir }

// Started reports whether the engine runs instances, and not just opens the
// files.
func (e *Engine) Started() bool { return e.instances != nil }

// background runs work until it returns; Close waits for it.
func (e *Engine) background(work func(context.Context)) {
	e.work.Go(func() { work(e.ctx) })
}

// Close stops everything in an order in which nothing that was acknowledged
// is lost: running operations are cancelled and leave a state that the next
// start settles, then the instances stop, then the audit queue is written,
// then the files are closed. Close twice is fine.
func (e *Engine) Close(ctx context.Context) error {
	again := e.ctx.Err() != nil
	e.cancel()
	e.work.Wait()
	var errs []error
	if e.spares != nil {
		e.spares.Close()
	}
	errs = append(errs, e.closeReceivers())
	if e.instances != nil {
		errs = append(errs, e.instances.Close(ctx))
	}
	if e.Started() && !again {
		e.Finish(e.system(model.ActionApplianceStop, "", model.Resource{}), nil)
	}
	e.audits.add(e.folds.end()...)
	e.audits.close()
	if e.Started() && !again {
		e.tryNoteCommits()
	}
	errs = append(errs, e.closeArchives(), e.blobs.Close(), e.meta.Close())
	return errors.Join(errs...)
}

// newID returns a new id for a resource of type t. Ids sort by the time they
// were made.
func (e *Engine) newID(t model.ResourceType) string {
	return formatID(t.Prefix(), e.ids.next(e.clock()))
}
