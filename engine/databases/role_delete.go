package databases

import (
	"context"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// RoleDeletion is what the deletion of a role has done.
type RoleDeletion struct {
	SessionsTerminated int
	// Dropped or Kept names the database that the appliance made for a role with access create: it is kept if it is in use.
	// Both are "" if there was none.
	Dropped, Kept string
}

// RoleDelete deletes a role of a database and ends its sessions. What it owns is the owner's to use, take and drop.
func (s *Service) RoleDelete(ctx context.Context, call *model.Call, id, name string) (done RoleDeletion, err error) {
	db, release, err := s.claimForRoles(call, id, "the deletion of a role")
	if err != nil {
		return done, err
	}
	defer release()
	role, err := roleOf(db, name)
	if err == nil {
		err = call.Match(role.Tag())
	}
	if err != nil {
		return done, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Timeouts.Start)
	defer cancel()
	call.Note("role", name)
	first, foundErr := s.firstDatabase(ctx, db, role)
	if _, done.SessionsTerminated, err = s.changeRoles(ctx, call, db, db.WithoutRole(name), name); err != nil {
		return done, err
	}
	kept := ""
	if foundErr == nil && first != "" {
		kept, foundErr = s.firstDatabase(ctx, db, role)
	}
	switch {
	case foundErr != nil: // the role is gone all the same
		s.core.Log.Warn("look for the database of a deleted role", "database", db.ID, "role", name, "error", foundErr)
	case kept == "":
		done.Dropped = first
	default:
		done.Kept = kept
	}
	return done, nil
}

// firstDatabase returns the name of the database that the appliance made for a role, "" if there is none.
func (s *Service) firstDatabase(ctx context.Context, db model.Database, role model.DatabaseRole) (name string, err error) {
	if role.Access != model.AccessCreate {
		return "", nil
	}
	err = s.maintain(ctx, db.ID, func(ctx context.Context, conn *pgx.Conn) error {
		found, err := postgres.HasDatabase(ctx, conn, db.FirstDatabase(role.Name))
		if found {
			name = db.FirstDatabase(role.Name)
		}
		return err
	})
	return name, err
}
