package databases

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/connstring"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// Clients make further roles of a database. The record has them; a server follows it like it follows the passwords of
// the owner and the read-only role: at each start, and in whatever a restore, an upgrade or a rebuild brings.

// RoleList returns the roles of a database that clients made, by name.
func (s *Service) RoleList(call *model.Call, id string) ([]model.DatabaseRole, error) {
	db, err := s.Database(call, id)
	return db.Roles, err
}

// RoleGet returns a role of a database.
func (s *Service) RoleGet(call *model.Call, id, name string) (model.DatabaseRole, error) {
	db, err := s.Database(call, id)
	if err != nil {
		return model.DatabaseRole{}, err
	}
	return roleOf(db, name)
}

func roleOf(db model.Database, name string) (model.DatabaseRole, error) {
	role, found := db.Role(name)
	switch {
	case found:
		return role, nil
	case name == db.Owner || name == db.ReadOnly:
		return role, model.Errorf(model.CodeNotFound, "%s is the database's own role and not one of its further roles: its connection and its password are those of the database", name)
	default:
		return role, model.Errorf(model.CodeNotFound, "the database has no role %q", name)
	}
}

// RoleSecret is a role with a new password, which nothing else has.
type RoleSecret struct {
	model.DatabaseRole
	Connection         Connection
	SessionsTerminated int
}

// claimForRoles claims a database whose roles a call changes. The caller releases it.
func (s *Service) claimForRoles(call *model.Call, id, what string) (model.Database, func(), error) {
	db, release, err := s.claimAvailable(call, id, what)
	if err == nil && db.Sandbox {
		release()
		err = model.Errorf(model.CodeConflict, "%s is a sandbox, which lasts only as long as its command runs: its roles cannot be changed", db.Name)
	}
	return db, release, err
}

// sealVerifier gives a role another password, and returns it.
func (s *Service) sealVerifier(db model.Database, role *model.DatabaseRole, password model.Secret) error {
	verifier, err := postgres.NewVerifier(password)
	if err != nil {
		return err
	}
	now := s.core.Clock()
	role.Verifier, role.PasswordSetAt, role.UpdatedAt = s.core.Sealer.Seal(verifierPurpose(db.ID, role.Name), verifier), &now, now
	return nil
}

// secretOf returns what a client is told of a role with a new password.
func (s *Service) secretOf(db model.Database, role model.DatabaseRole, password model.Secret, ended int) RoleSecret {
	database := db.Name
	if role.Access == model.AccessCreate { // tools make tables in the database that their URL names
		database = db.FirstDatabase(role.Name)
	}
	return RoleSecret{DatabaseRole: role, SessionsTerminated: ended, Connection: Connection{
		CACertificate: s.CA.PEM(), ReadOnly: role.Access == model.AccessRead, Target: connstring.Target{
			Host: s.core.Config.PublicHost, Port: db.Port, Database: database, User: role.Name, Password: password,
		},
	}}
}

// clientRoles returns the roles of a record for its server.
func (s *Service) clientRoles(db model.Database) (roles []postgres.ClientRole, err error) {
	for _, r := range db.Roles {
		role := postgres.ClientRole{Name: r.Name, Access: r.Access, Connections: r.ConnectionLimit}
		if r.Verifier != nil {
			if role.Verifier, err = s.core.Sealer.Open(verifierPurpose(db.ID, r.Name), r.Verifier); err != nil {
				return nil, err
			}
		}
		roles = append(roles, role)
	}
	return roles, nil
}

// applyRoles makes the server follow the roles of the record: their rules first, so that a role that is gone gets no new
// session. It ends the sessions of the role named ends, "" for none, and returns how many. What a role that is gone owned
// is given to the owner; where locks prevent that, the role stays closed and the next change or start does it.
func (s *Service) applyRoles(ctx context.Context, db model.Database, ends string) (ended int, err error) {
	tenant, err := s.tenant(db)
	if err != nil {
		return 0, err
	}
	if err := s.applyAccess(ctx, db); err != nil {
		return 0, err
	}
	if err := s.applyOrRestart(ctx, db.ID, func(ctx context.Context, conn *pgx.Conn) error {
		return postgres.SetClientRoles(ctx, conn, tenant)
	}); err != nil {
		return 0, err
	}
	if ended, err = s.endRole(ctx, db, ends); err != nil {
		return ended, err
	}
	return ended, s.maintain(ctx, db.ID, func(ctx context.Context, conn *pgx.Conn) error {
		return postgres.FollowClientRoles(ctx, conn, tenant, ends)
	})
}

// endRole ends the sessions of a role and returns how many it ended.
func (s *Service) endRole(ctx context.Context, db model.Database, role string) (ended int, err error) {
	if role == "" || s.IsAsleep(db.ID) {
		return 0, nil
	}
	err = s.applyOrRestart(ctx, db.ID, func(ctx context.Context, conn *pgx.Conn) error {
		n, err := postgres.TerminateRole(ctx, conn, role)
		ended += n
		return err
	})
	return ended, err
}

// locked explains an error of a change that locks of tenants' sessions prevented.
func locked(field, remedy string, err error) error {
	if !errors.Is(err, postgres.ErrLocked) {
		return err
	}
	return &model.Error{Code: model.CodeConflict, Err: err, Message: field + ": transactions that have changed the database's tables are still open, and " + remedy +
		"; nothing was changed. See its locks and sessions, and try again when they have ended"}
}

// creators returns the roles as which clients may log in to the databases that they create beside this one.
func creators(db model.Database) (users []string) {
	for _, r := range db.Roles {
		if r.Verifier != nil && r.Access == model.AccessCreate {
			users = append(users, r.Name)
		}
	}
	slices.Sort(users)
	return users
}

// roleUsers returns the roles as which clients may log in besides the database's own.
func roleUsers(db model.Database) (users []string) {
	for _, r := range db.Roles {
		if r.Verifier != nil {
			users = append(users, r.Name)
		}
	}
	slices.Sort(users)
	return users
}
