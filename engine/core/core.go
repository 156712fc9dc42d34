// Package core holds what every operation of the appliance needs: its metadata and
// blobs, the clock, ids, claims, secrets, the audit log, idempotency, plans and
// events. The service packages (access, objects, databases, recovery, imports,
// insight) share one *Core; core imports none of them.
//
// A gate makes a call, a service carries out its operation, and Finish ends it. A
// change and its audit entry are committed in one transaction (Change). Only one
// operation at a time changes a resource: it holds a claim, in memory, because only
// one process has the data directory open.
package core

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/blobstore"
	"holdfast/engine/meta"
)

// Core is shared by the services. Its fields are set before the first operation and
// do not change afterwards.
type Core struct {
	Config Config
	Log    *slog.Logger
	Clock  func() time.Time // in UTC
	Meta   *meta.DB
	Blobs  *blobstore.Store // set by objects.Service.Open
	Sealer Sealer
	Signer Signer
	// AccessKeys derives the secrets of access keys for the S3 protocol.
	AccessKeys Signer
	IDs        *IDSource
	Claims     *Claims
	// Cancels holds the background operations that another operation may cancel.
	Cancels Cancels
	// Space keeps the disk space that background operations will still write.
	Space Space
	// Watchers counts the requests that wait for something to happen.
	Watchers  Watchers
	Audits    *AuditQueue
	Coalescer *AuditCoalescer
	Rates     *RateLimiter
	Guard     ClockGuard

	// RemovalLock: removers of files hold it shared; an export of the appliance
	// holds it exclusively, so that nothing it copies disappears.
	RemovalLock sync.RWMutex

	// authority: commits for a caller hold it shared from the check of the caller on; what ends the authority of
	// callers, or makes the appliance read-only, then takes it exclusively, so that no earlier check outlasts it.
	authority sync.RWMutex

	// Lifetime ends when Stop is called. Work counts the background goroutines;
	// closing the engine waits for them.
	Lifetime context.Context
	Stop     context.CancelFunc
	Work     sync.WaitGroup

	keepsDiscarded atomic.Bool
	retentions     retentions // set by BeginRetentions

	auditKey []byte
	readOnly atomic.Pointer[string] // why changes are refused, nil if they are not
	once     idempotentInProgress
	visitors *RateLimiter // for requests without a key, by address and account
}

// New returns a core on open metadata, with the key of the data directory.
func New(cfg Config, db *meta.DB) (*Core, error) {
	if err := refuseWithoutKey(cfg.DataDir, db); err != nil {
		return nil, err
	}
	sealer, err := loadSealer(filepath.Join(cfg.DataDir, KeyFile))
	if err != nil {
		return nil, err
	}
	c := &Core{
		Config: cfg, Log: cfg.Log, Meta: db, Sealer: sealer,
		Clock:      func() time.Time { return cfg.Clock().UTC() },
		Signer:     sealer.signer(),
		AccessKeys: newSigner(sealer.derive("holdfast s3 secret keys")),
		auditKey:   sealer.derive("holdfast audit chain"),
		IDs:        newIDSource(),
		Rates:      newRateLimiter(cfg.Rates),
		visitors:   newRateLimiter(VisitorRates()),
		Claims:     NewClaims(),
		Space:      Space{dir: cfg.DataDir},
	}
	c.Lifetime, c.Stop = context.WithCancel(context.Background())
	return c, c.recordEvents()
}

// Begin loads the clock's guard and starts the audit queue. Afterwards, calls can be
// finished.
func (c *Core) Begin() error {
	if err := c.loadClock(); err != nil {
		return fmt.Errorf("read the clock's guard: %w", err)
	}
	c.Audits, c.Coalescer = startAuditQueue(c), newAuditCoalescer()
	return nil
}
