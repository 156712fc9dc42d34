package databases

import (
	"context"
	"crypto/sha256"
	"errors"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// A role can change its own password with SQL. The appliance checks for that with
// every sample, at every start and with every request for connection details. The
// owner's password stays in force, across restarts and restores, until the
// password is rotated, because others may know an older one. Users may not change
// the read-only role and the roles that clients made: their stored passwords are restored.

// notePasswords records which passwords of the database were changed with SQL and
// returns the record. It does nothing while the appliance itself changes them.
// conn is a connection of the superuser.
func (s *Service) notePasswords(ctx context.Context, conn *pgx.Conn, db model.Database) (model.Database, error) {
	if db.PendingChange != nil || s.States.rolesPending(db.ID) {
		return db, nil
	}
	drift, err := s.passwordDrift(ctx, conn, db)
	if err != nil || !drift.any() {
		return db, err
	}
	release, err := s.core.Claims.TakeBriefly(db.ID, "a check of its passwords")
	now, recordErr := s.Record(db.ID)
	if recordErr != nil {
		if err == nil {
			release()
		}
		return db, recordErr
	}
	if err != nil { // another operation on the database is running
		if now.PendingChange == nil && string(now.OwnerPassword) == string(db.OwnerPassword) && drift.owner {
			db.OwnPassword = s.ownPassword(db, drift)
		}
		return db, nil
	}
	defer release()
	if now.PendingChange != nil {
		return now, nil
	}
	now, err = s.noteOwner(ctx, conn, now)
	return now, errors.Join(err, s.restoreReader(ctx, conn, now))
}

// noteOwner records that the owner's password was changed with SQL, or changed
// back. The caller holds the database's claim.
func (s *Service) noteOwner(ctx context.Context, conn *pgx.Conn, db model.Database) (model.Database, error) {
	drift, err := s.passwordDrift(ctx, conn, db)
	if err != nil || !drift.owner {
		return db, err
	}
	own := s.ownPassword(db, drift)
	call := s.core.System(model.ActionPasswordChanged, db.Organization, DatabaseResource(db))
	call.Note("role", db.Owner)
	err = s.core.Change(call, func(tx *meta.Tx) (err error) {
		db, err = tx.Databases().Update(db.ID, func(d *model.Database) error {
			d.OwnPassword = own
			return nil
		})
		return err
	})
	if err == nil && own != nil {
		s.core.Log.Warn("the owner's password was changed by SQL: connection details come without it until it is rotated", "database", db.ID, "role", db.Owner)
	}
	return db, err
}

// ownPassword returns the record of the password that drift found, nil when it is
// the stored one.
func (s *Service) ownPassword(db model.Database, drift passwordDrift) *model.OwnPassword {
	if drift.stored {
		return nil
	}
	return &model.OwnPassword{Verifier: s.core.Sealer.Seal(verifierPurpose(db.ID, db.Owner), drift.verifiers.Owner), NoticedAt: s.core.Clock()}
}

// restoreReader restores the stored password and settings of the read-only role, and of
// the roles that clients made. The caller holds the database's claim.
func (s *Service) restoreReader(ctx context.Context, conn *pgx.Conn, db model.Database) error {
	drift, err := s.passwordDrift(ctx, conn, db)
	if drift.readOnly {
		drift.roles = append(drift.roles, db.ReadOnly)
	}
	if err != nil || len(drift.roles) == 0 {
		return err
	}
	tenant, err := s.tenant(db)
	if err == nil {
		err = postgres.SetPasswords(ctx, conn, tenant)
	}
	call := s.core.System(model.ActionPasswordPutBack, db.Organization, DatabaseResource(db))
	call.Note("role", strings.Join(drift.roles, ", "))
	s.core.Finish(call, err)
	return err
}

// passwordDrift says how the passwords in force differ from the record.
type passwordDrift struct {
	verifiers       postgres.Verifiers
	owner, readOnly bool     // they differ
	stored          bool     // the owner has the stored password
	roles           []string // other roles that differ
}

func (d passwordDrift) any() bool { return d.owner || d.readOnly || len(d.roles) > 0 }

func (s *Service) passwordDrift(ctx context.Context, conn *pgx.Conn, db model.Database) (d passwordDrift, err error) {
	tenant, err := s.tenant(db)
	if err != nil {
		return d, err
	}
	if d.verifiers, err = postgres.ReadVerifiers(ctx, conn, tenant); err != nil {
		return d, err
	}
	if own := tenant.OwnerVerifier; own.IsZero() || own.Reveal() != d.verifiers.Owner.Reveal() {
		d.stored = s.verifiers.fits(db.ID, d.verifiers.Owner, tenant.OwnerPassword)
		d.owner = !d.stored || !own.IsZero()
	}
	d.readOnly = !s.verifiers.fits(db.ID+" reader", d.verifiers.ReadOnly, tenant.ReadOnlyPassword)
	for _, r := range tenant.Roles {
		if !d.verifiers.HasVerifier(r) {
			d.roles = append(d.roles, r.Name)
		}
	}
	return d, nil
}

// reconcileRoles is provisioning for an instance that may have served clients since
// the record was last compared with it: it first notes what the tenant changed.
// While roles are pending, the instance has not followed the record, so the record
// wins.
func (s *Service) reconcileRoles(db model.Database) func(context.Context, *pgx.Conn) error {
	return func(ctx context.Context, conn *pgx.Conn) error {
		db, err := s.Record(db.ID)
		if err == nil && db.PendingChange == nil && !s.States.rolesPending(db.ID) {
			db, err = s.noteOwner(ctx, conn, db)
		}
		if err != nil {
			return err
		}
		taken, err := postgres.LoginSettings(ctx, conn)
		if err != nil {
			return err
		}
		if err := s.provisioning(db)(ctx, conn); err != nil || len(taken) == 0 {
			return err
		}
		call := s.core.System(model.ActionLoginSettingsReset, db.Organization, DatabaseResource(db))
		call.Note("settings", strings.Join(taken, ", "))
		s.core.Log.Warn("settings that may end every session as it begins were reset", "database", db.ID, "settings", taken)
		s.core.Finish(call, nil)
		return nil
	}
}

// knownVerifiers caches which verifier last matched the stored password, because a
// comparison takes a millisecond.
type knownVerifiers struct{ known sync.Map } // role to SHA-256

// fits reports whether the verifier matches the password. role identifies the role
// across databases.
func (k *knownVerifiers) fits(role string, verifier, password model.Secret) bool {
	sum := sha256.Sum256([]byte(verifier.Reveal() + "\x00" + password.Reveal()))
	if known, _ := k.known.Load(role); known == sum {
		return true
	}
	if !postgres.IsVerifierOf(verifier, password) {
		return false
	}
	k.known.Store(role, sum)
	return true
}

// drop removes a database that no longer exists.
func (k *knownVerifiers) drop(id string) {
	k.known.Delete(id)
	k.known.Delete(id + " reader")
}
