package cli_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"holdfast/cli/client"
	"holdfast/server/api/wire"
)

// chaosRoles is the maximum number of roles of a database, of those that are not certainly deleted.
const chaosRoles = 6

// chaosRole is what is known of a role of a database.
type chaosRole struct {
	name      string
	there     outcome           // done: it is; refused: it was deleted
	passwords []string          // each may be the current one; "" is one that was never returned
	access    []wire.RoleAccess // each may be the current one
}

var roleAccesses = []wire.RoleAccess{wire.AccessRead, wire.AccessWrite, wire.AccessOwner, wire.AccessCreate}

// changeRole makes a role of a database, or changes or deletes one.
func (c *chaos) changeRole(ctx context.Context, random *rand.Rand, api *client.Client) bool {
	db := c.pickToChange(random)
	if db == nil {
		return false
	}
	defer db.endChange()
	var left []*chaosRole
	for _, r := range db.roles {
		if r.there != refused {
			left = append(left, r)
		}
	}
	if len(left) == 0 || len(left) < chaosRoles && random.IntN(3) == 0 {
		c.makeRole(ctx, random, api, db)
		return true
	}
	role := left[random.IntN(len(left))]
	allowed := []wire.ErrorCode{wire.CodeConflict}
	if role.there == unknown {
		allowed = append(allowed, wire.CodeNotFound)
	}
	switch random.IntN(3) {
	case 0:
		made, err := api.RotateDatabaseRolePassword(ctx, db.id, role.name)
		switch c.outcome("rotate the password of a role", err, allowed...) {
		case done:
			role.there, role.passwords = done, []string{known(made.Connection.Password)}
		case unknown:
			role.passwords = append(role.passwords, "")
		}
	case 1:
		access := roleAccesses[random.IntN(len(roleAccesses))]
		_, err := api.UpdateDatabaseRole(ctx, db.id, role.name, wire.UpdateDatabaseRole{Access: &access})
		switch c.outcome("change the access of a role", err, allowed...) {
		case done:
			role.there, role.access = done, []wire.RoleAccess{access}
		case unknown:
			role.access = append(role.access, access)
		}
	default:
		_, err := api.DeleteDatabaseRole(ctx, db.id, role.name)
		switch c.outcome("delete a role", err, allowed...) {
		case done:
			role.there = refused
		case unknown:
			role.there = unknown
		}
	}
	return true
}

func (c *chaos) makeRole(ctx context.Context, random *rand.Rand, api *client.Client, db *chaosDatabase) {
	name := strings.ReplaceAll(c.name("role"), "-", "_")
	access := roleAccesses[random.IntN(len(roleAccesses))]
	role := &chaosRole{name: name, passwords: []string{""}, access: []wire.RoleAccess{access}}
	made, err := api.CreateDatabaseRole(ctx, db.id, wire.CreateDatabaseRole{Name: name, Access: access})
	role.there = c.outcome("make a role", err, wire.CodeConflict)
	if role.there == done {
		role.passwords = []string{known(made.Connection.Password)}
	}
	db.roles = append(db.roles, role)
}

// checkRoles checks that the roles of a database are the acknowledged ones, and that those log in, and no other.
func (c *chaos) checkRoles(ctx context.Context, api *client.Client, db *chaosDatabase, ownerURL string) {
	list, err := api.ListDatabaseRoles(ctx, db.id)
	if err != nil {
		c.t.Errorf("the roles of %s: %v", db, err)
		return
	}
	for _, role := range db.roles {
		at := slices.IndexFunc(list.Roles, func(r wire.DatabaseRole) bool { return r.Name == role.name })
		switch {
		case at < 0 && role.there == done:
			c.t.Errorf("the role %s of %s was acknowledged and is lost", role.name, db)
		case at >= 0 && role.there == refused:
			c.t.Errorf("the role %s of %s is there and was never made, or deleted", role.name, db)
		case at >= 0 && !slices.Contains(role.access, list.Roles[at].Access):
			c.t.Errorf("the role %s of %s has the access %s, not one of %q", role.name, db, list.Roles[at].Access, role.access)
		case at >= 0:
			c.checkRole(ctx, api, db, role, list.Roles[at], ownerURL)
			continue
		}
		role.there = refused
		for _, password := range role.passwords {
			if err := db.logInAs(ctx, ownerURL, role.name, password); err == nil {
				c.t.Errorf("the role %s of %s is deleted and logs in", role.name, db)
			}
		}
	}
}

// checkRole checks that a role logs in with its password, and learns it if its change was not acknowledged.
func (c *chaos) checkRole(ctx context.Context, api *client.Client, db *chaosDatabase, role *chaosRole, listed wire.DatabaseRole, ownerURL string) {
	role.there, role.access = done, []wire.RoleAccess{listed.Access}
	if len(role.passwords) > 1 || role.passwords[0] == "" {
		made, err := api.RotateDatabaseRolePassword(ctx, db.id, role.name)
		if err != nil {
			c.t.Errorf("rotate the password of the role %s of %s: %v", role.name, db, err)
			return
		}
		for _, old := range role.passwords {
			if err := db.logInAs(ctx, ownerURL, role.name, old); !isWrongPassword(err) {
				c.t.Errorf("a password of the role %s of %s that was replaced: %v", role.name, db, err)
			}
		}
		role.passwords = []string{known(made.Connection.Password)}
	}
	if err := db.logInAs(ctx, ownerURL, role.name, role.passwords[0]); err != nil {
		c.t.Errorf("the role %s of %s cannot log in: %v", role.name, db, err)
	}
}

// logInAs logs in as a role. Without a password pgx would look for one elsewhere.
func (d *chaosDatabase) logInAs(ctx context.Context, url, user, password string) error {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return err
	}
	config.User, config.Password = user, password
	if password == "" {
		config.Password = "none"
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}
