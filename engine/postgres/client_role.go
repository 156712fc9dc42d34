package postgres

import (
	"fmt"
	"strings"

	"holdfast/engine/model"
)

// ClientRole is a role besides the owner and the read-only one as which clients may log in.
//
// One with access to read or to write is a member of a group (role_groups.go), which has the privileges: so they are
// granted once, however many roles there are. One with the owner's access is a member of the owner, and its sessions
// begin as the owner (the setting role), so that what it makes belongs to the owner. One that creates databases is a member
// of a group that owns them (beside.go), and its sessions begin as that.
type ClientRole struct {
	Name        string
	Access      model.RoleAccess
	Verifier    model.Secret // see NewVerifier; zero means that it has no password, so nobody can log in as it
	Connections int          // how many sessions it may have at a time, 0 for as many as the owner
}

// clientRoleMark begins the comment that identifies such a role; its access follows.
const clientRoleMark = "holdfast: role with access "

// ownerMark is the comment of a role with the owner's access. lostOwner ends that of a role that had it and may still
// own something. createMark and lostCreate are those of a role that creates databases.
const (
	ownerMark  = clientRoleMark + string(model.AccessOwner)
	lostOwner  = ", no longer owner"
	createMark = clientRoleMark + string(model.AccessCreate)
	lostCreate = ", no longer create"
)

// NewVerifier returns what the server stores for a password.
func NewVerifier(password model.Secret) (model.Secret, error) {
	verifier, err := scramVerifier(password)
	return model.NewSecret(verifier), err
}

// clientRoles returns the statements that make the roles of t and close those that it does not have, which
// [FollowClientRoles] drops. They run in the database postgres; what a role may do in the tenant's follows from its group.
func (t Tenant) clientRoles() []string {
	statements := []string{t.closeClientRoles()}
	for _, access := range t.accesses() {
		statements = append(statements, makeGroup(access))
	}
	if t.creators() {
		statements = append(statements, makeGroup(model.AccessCreate), admitGroup)
	}
	for _, r := range t.Roles {
		statements = append(statements, t.makeClientRole(r), joinGroup(r.Name, t.groupOf(r.Access), becomesGroup(r.Access)))
		statements = append(statements, t.clientRoleLogin(r)...)
		statements = append(statements, t.clientRoleSettings(r)...)
	}
	return append(statements, limitCreation)
}

// closeClientRoles returns the statement that takes the login from roles that t does not have.
func (t Tenant) closeClientRoles() string {
	return fmt.Sprintf(`DO $$ DECLARE r name; BEGIN
		FOR r IN %s LOOP
			EXECUTE format('ALTER ROLE %%I %s PASSWORD NULL', r);
		END LOOP; END $$`, t.otherClientRoles(), closedRole)
}

// otherClientRoles returns the query of the roles that t does not have.
func (t Tenant) otherClientRoles() string {
	names := make([]string, len(t.Roles))
	for i, r := range t.Roles {
		names[i] = quoteLiteral(r.Name)
	}
	return fmt.Sprintf(`SELECT rolname FROM pg_shdescription JOIN pg_roles ON objoid = oid
		WHERE classoid = 'pg_authid'::regclass AND starts_with(description, %s) AND rolname <> ALL (ARRAY[%s]::name[])`,
		quoteLiteral(clientRoleMark), strings.Join(names, ", "))
}

// makeClientRole returns the statement that creates a role, unless there is one of this access. If its access was
// another, the settings of that are reset; if it was the owner's, or to create databases, the comment says so until
// [FollowClientRoles] has taken what it had.
func (t Tenant) makeClientRole(r ClientRole) string {
	name := quoteName(r.Name)
	return fmt.Sprintf(`DO $$ DECLARE now text; mark text := %[5]s; BEGIN
		IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = %[1]s) THEN CREATE ROLE %[2]s %[3]s; END IF;
		now := shobj_description(%[4]s::regrole, 'pg_authid');
		mark := mark || CASE WHEN mark <> %[7]s AND (now = %[7]s OR now LIKE '%%%[8]s') THEN '%[8]s'
			WHEN mark <> %[9]s AND (now = %[9]s OR now LIKE '%%%[10]s') THEN '%[10]s' ELSE '' END;
		IF now IS DISTINCT FROM mark THEN
			ALTER ROLE %[2]s RESET ALL;
			ALTER ROLE %[2]s IN DATABASE %[6]s RESET ALL;
			EXECUTE format('COMMENT ON ROLE %%s IS %%L', %[4]s, mark);
		END IF; END $$`, quoteLiteral(r.Name), name, closedRole, quoteLiteral(name), quoteLiteral(clientRoleMark+string(r.Access)),
		quoteName(t.Database), quoteLiteral(ownerMark), lostOwner, quoteLiteral(createMark), lostCreate)
}

// becomesGroup reports whether the sessions of a role with the access begin as its group.
func becomesGroup(access model.RoleAccess) bool {
	return access == model.AccessOwner || access == model.AccessCreate
}

// joinGroup returns the statement that makes a role a member of group and of no other role. Where PostgreSQL can tell the
// two apart, a member has the privileges of its group but cannot become it, unless become is set.
func joinGroup(role, group string, become bool) string {
	return fmt.Sprintf(`DO $$ DECLARE other regrole; BEGIN
		FOR other IN SELECT roleid FROM pg_auth_members WHERE member = %[1]s::regrole AND roleid <> %[2]s::regrole LOOP
			EXECUTE format('REVOKE %%s FROM %[3]s', other);
		END LOOP;
		EXECUTE 'GRANT %[4]s TO %[3]s' || CASE WHEN current_setting('server_version_num')::int >= 160000 THEN ' WITH INHERIT TRUE, SET %[5]t' ELSE '' END;
		END $$`, quoteLiteral(quoteName(role)), quoteLiteral(quoteName(group)), quoteName(role), quoteName(group), become)
}

// clientRoleLogin returns the statements that let a role log in.
func (t Tenant) clientRoleLogin(r ClientRole) []string {
	verifier, rights := r.Verifier.Reveal(), plainRole
	if verifier == "" {
		verifier, rights = NoPassword, closedRole
	}
	name := quoteName(r.Name)
	return []string{
		"ALTER ROLE " + name + " " + rights + connectionLimit(t.clientRoleConnections(r)) + passwordClause(verifier),
		"GRANT CONNECT ON DATABASE " + quoteName(t.Database) + " TO " + name,
	}
}

func (t Tenant) clientRoleConnections(r ClientRole) int {
	if r.Connections == 0 || t.Connections > 0 && t.Connections < r.Connections {
		return t.Connections
	}
	return r.Connections
}

// clientRoleSettings returns the statements that set what the access of a role needs, and reset what ends its sessions
// at their start.
func (t Tenant) clientRoleSettings(r ClientRole) []string {
	if r.Access == model.AccessRead {
		return readerSettings(t.Database, r.Name)
	}
	role, here := "ALTER ROLE "+quoteName(r.Name), " IN DATABASE "+quoteName(t.Database)
	statements := []string{role + " RESET local_preload_libraries", role + here + " RESET local_preload_libraries", role + here + " RESET role"}
	if becomesGroup(r.Access) {
		return append(statements, role+" SET role = "+quoteLiteral(t.groupOf(r.Access)))
	}
	return append(statements, role+" RESET role")
}
