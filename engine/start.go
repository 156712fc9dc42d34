package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// parallelStarts is how many instances come up at a time.
const parallelStarts = 4

// startClaim is held while a database is brought up with the appliance.
const startClaim = "the start"

// claimedStart is a database that is to be brought up.
type claimedStart struct {
	database string
	release  func()
}

// claimStarts claims every database for its start, before anybody can ask for
// anything: whoever came first would be at a database that nobody starts any
// more.
func (e *Engine) claimStarts() (starts []claimedStart, err error) {
	databases, err := e.keptDatabases()
	if err != nil {
		return nil, fmt.Errorf("list databases to start: %w", err)
	}
	for _, db := range databases {
		if e.claims.holds(db.ID, unsettled) {
			continue
		}
		release, err := e.claims.take(db.ID, startClaim)
		if err != nil {
			return nil, fmt.Errorf("start %s: %w", db.ID, err)
		}
		starts = append(starts, claimedStart{db.ID, release})
	}
	return starts, nil
}

// startDatabases brings up the databases that are claimed for it.
func (e *Engine) startDatabases(ctx context.Context, starts []claimedStart) {
	places := make(chan struct{}, parallelStarts)
	var all sync.WaitGroup
	for _, start := range starts {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			defer start.release()
			e.startAtBoot(ctx, start.database)
		})
	}
	all.Wait()
}

func (e *Engine) startAtBoot(ctx context.Context, id string) {
	db, err := e.record(id)
	if err != nil {
		e.log.Error("start database", "database", id, "error", err)
		return
	}
	if db.Rebuild {
		if err := e.backups.Rebuild(ctx, db); err != nil && ctx.Err() == nil {
			e.log.Error("rebuild database", "database", db.ID, "name", db.Name, "error", err)
		}
		return
	}
	err = e.startDatabase(ctx, db)
	if db.Unfinished != nil && ctx.Err() == nil {
		err = e.settleChange(ctx, db, err)
	}
	if err != nil && ctx.Err() == nil {
		e.log.Error("start database", "database", db.ID, "name", db.Name, "error", err)
	}
	e.backups.BackUpIfOwed(db)
}

// startDatabase starts the database's instance, or adopts it when it runs
// already, receives its WAL and makes its roles what the record says. What
// fails is tried again in the background.
func (e *Engine) startDatabase(ctx context.Context, db model.Database) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if _, err := e.renewFor(db); err != nil {
		return e.keepTrying(ctx, db, err)
	}
	db, err := e.startInstance(ctx, db)
	if err != nil {
		return e.keepTrying(ctx, db, err)
	}
	if err := e.seeTo(ctx, db); err != nil {
		e.states.expectLate(db.ID)
		return err
	}
	e.sampleOne(ctx, db)
	return nil
}

// seeTo gives an instance that is up what it takes to be available: its WAL is
// received, whatever becomes of the rest, and its roles are what the record says.
func (e *Engine) seeTo(ctx context.Context, db model.Database) error {
	err := e.backups.ReceiveWAL(db)
	if err != nil {
		err = fmt.Errorf("receive WAL: %w", err)
	}
	return errors.Join(err, e.setRoles(ctx, db))
}

// setRoles makes the roles of an instance that has just been started what the
// record says, and notes what was changed about them by SQL.
func (e *Engine) setRoles(ctx context.Context, db model.Database) error {
	if err := e.insist(ctx, db.ID, e.settingRoles(db)); err != nil {
		return fmt.Errorf("provision database: %w", err)
	}
	return nil
}

// setRolesOrLater is setRoles for an instance that serves in any case: what
// fails is done later, see late.go.
func (e *Engine) setRolesOrLater(ctx context.Context, db model.Database) {
	if err := e.setRoles(ctx, db); err != nil {
		e.log.Error("set the roles of a database that was restarted", "database", db.ID, "error", err)
		e.states.expectLate(db.ID)
	}
}

// startInstance starts the database's instance, on another port when a
// foreign process has taken its own: the record it returns has the port.
func (e *Engine) startInstance(ctx context.Context, db model.Database) (model.Database, error) {
	spec, err := e.spec(ctx, db)
	if err != nil {
		return db, err
	}
	keepFitted(spec.Config.Settings, db, spec.Dir)
	if err := e.instances.Start(ctx, spec); err != nil {
		return db, err
	}
	now, err := e.record(db.ID)
	db.Port = now.Port
	return db, err
}

// keepTrying has an instance that could not be started tried again in the
// background. One whose binaries are missing waits for a restart by a person.
func (e *Engine) keepTrying(ctx context.Context, db model.Database, cause error) error {
	spec, err := e.spec(ctx, db)
	if err != nil {
		e.instanceChanged(db.ID, postgres.StateFailed, model.PublicMessage(err))
		return err
	}
	e.states.expectLate(db.ID)
	if err := e.instances.Keep(spec); err != nil {
		return errors.Join(cause, err)
	}
	return cause
}

// portTaken gives a database another port, because a foreign process has
// taken its own.
func (e *Engine) portTaken(id string) (int, error) {
	db, err := e.record(id)
	if err != nil {
		return 0, err // an instance that is being built has no port of TCP
	}
	moved := db
	call := e.system(model.ActionInstanceMoved, db.Organization, databaseResource(db))
	err = e.withPort(func(port int) error {
		call.Details = map[string]string{"from": fmt.Sprint(db.Port), "to": fmt.Sprint(port)}
		return e.change(call, func(tx *meta.Tx) error {
			if err := claimPort(tx, port); err != nil {
				return err
			}
			moved, err = tx.Databases().Update(db.ID, func(d *model.Database) error {
				d.Port, d.UpdatedAt = port, e.clock()
				return nil
			})
			return err
		})
	})
	if err == nil {
		e.log.Warn("another process has the database's port: moved", "database", db.ID, "name", db.Name, "from", db.Port, "to", moved.Port)
	}
	return moved.Port, err
}

// certificateRenewal is how long before its end a certificate is renewed.
const certificateRenewal = 30 * 24 * time.Hour

// renewCertificate gives the data directory a certificate when it has none,
// one that ends soon, or one for other hosts, and reports whether it did.
func (e *Engine) renewCertificate(dir string) (bool, error) {
	certificate, err := postgres.ReadCertificate(dir)
	if err == nil && e.isFresh(certificate) && slices.Equal(slices.Sorted(slices.Values(certificate.SANs)), e.instanceHosts()) {
		return false, nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		e.log.Warn("the certificate is unusable: issuing another", "directory", dir, "error", err)
	}
	return true, e.issueCertificate(dir)
}

// isFresh reports whether a certificate need not be renewed yet, or a renewal
// would not last longer, because the authority itself ends then.
func (e *Engine) isFresh(c postgres.Certificate) bool {
	return e.clock().Add(certificateRenewal).Before(c.NotAfter) || !c.NotAfter.Before(e.ca.NotAfter())
}

// renewRunning renews the certificate of a running instance, which goes on
// without a session dropped.
func (e *Engine) renewRunning(ctx context.Context, db model.Database) error {
	release, err := e.claims.take(db.ID, "the renewal of its certificate")
	if err != nil {
		return nil // busy: the next sweep is soon enough
	}
	defer release()
	if db, err = e.record(db.ID); err != nil {
		return err
	}
	if state, _, _ := e.instances.Status(db.ID); state != postgres.StateRunning {
		return nil
	}
	renewed, err := e.renewFor(db)
	if err != nil || !renewed {
		return err
	}
	if err := e.instances.Reload(ctx, db.ID); err != nil {
		return fmt.Errorf("reload renewed certificate: %w", err)
	}
	return nil
}

// renewFor is renewCertificate for a database, and audits what it did.
func (e *Engine) renewFor(db model.Database) (bool, error) {
	renewed, err := e.renewCertificate(e.dataDirectory(db.ID, db.Generation))
	if renewed {
		e.Finish(e.system(model.ActionCertificateRenew, db.Organization, databaseResource(db)), err)
	}
	return renewed, err
}
