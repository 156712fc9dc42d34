package postgres

import (
	"cmp"
	"context"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"holdfast/engine/model"

	"github.com/jackc/pgx/v5"
)

// NoPassword represents the verifier of a role that has none and cannot log in.
const NoPassword = "none"

// Verifiers holds the passwords of a tenant's roles as pg_authid has them,
// [NoPassword] for a role that has none.
type Verifiers struct {
	Owner, ReadOnly model.Secret
	Roles           map[string]model.Secret // by name
}

// longestVerifier is the maximum length of a verifier in bytes, the same as in
// PostgreSQL 18. Older servers accept any length from a role, with a salt of
// megabytes; PostgreSQL's own verifiers have 133 bytes.
const longestVerifier = 512

// ReadVerifiers reads the verifiers of t's roles. A verifier longer than
// longestVerifier counts as [NoPassword]. conn is the superuser's, in any
// database.
func ReadVerifiers(ctx context.Context, conn *pgx.Conn, t Tenant) (Verifiers, error) {
	var owner, readOnly string
	const verifier = "coalesce((select rolpassword from pg_authid where rolname = %s and octet_length(rolpassword) <= $3), '" + NoPassword + "')"
	err := conn.QueryRow(ctx, "select "+fmt.Sprintf(verifier, "$1")+", "+fmt.Sprintf(verifier, "$2"), t.Owner, t.ReadOnly, longestVerifier).
		Scan(&owner, &readOnly)
	if err != nil {
		return Verifiers{}, fmt.Errorf("read the verifiers of passwords: %w", err)
	}
	roles, err := roleVerifiers(ctx, conn, t)
	return Verifiers{model.NewSecret(owner), model.NewSecret(readOnly), roles}, err
}

func roleVerifiers(ctx context.Context, conn *pgx.Conn, t Tenant) (map[string]model.Secret, error) {
	roles := map[string]model.Secret{}
	for _, r := range t.Roles {
		roles[r.Name] = model.NewSecret(NoPassword)
	}
	if len(roles) == 0 {
		return nil, nil
	}
	rows, _ := conn.Query(ctx, "select rolname, rolpassword from pg_authid where rolname = any ($1::name[]) and octet_length(rolpassword) <= $2",
		slices.Sorted(maps.Keys(roles)), longestVerifier)
	var name, verifier string
	_, err := pgx.ForEachRow(rows, []any{&name, &verifier}, func() error {
		roles[name] = model.NewSecret(verifier)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the verifiers of roles: %w", err)
	}
	return roles, nil
}

// HasVerifier reports whether the role's password in the server is that of r.
func (v Verifiers) HasVerifier(r ClientRole) bool {
	return v.Roles[r.Name].Reveal() == cmp.Or(r.Verifier.Reveal(), NoPassword)
}

// mostIterations bounds the cost of comparing a password with a verifier. A role
// may give itself a verifier with 2^31 iterations, which would keep a processor
// busy for an hour.
const mostIterations = 1 << 17

// IsVerifierOf reports whether a role with the verifier logs in with the
// password. A verifier that is not SCRAM-SHA-256, or has more iterations than a
// client would use, matches no password.
func IsVerifierOf(verifier, password model.Secret) bool {
	method, rest, _ := strings.Cut(verifier.Reveal(), "$")
	parameters, _, _ := strings.Cut(rest, "$")
	count, encoded, _ := strings.Cut(parameters, ":")
	iterations, err := strconv.Atoi(count)
	if method != "SCRAM-SHA-256" || err != nil || iterations < 1 || iterations > mostIterations {
		return false
	}
	salt, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return false
	}
	want, err := scramVerifierWith(password, salt, iterations)
	return err == nil && subtle.ConstantTimeCompare([]byte(want), []byte(verifier.Reveal())) == 1
}

// loginSettings returns statements that reset the setting by which a role or a
// database ends all its sessions at their start: a library to preload that the
// server cannot load.
func (t Tenant) loginSettings() []string {
	d, o := quoteName(t.Database), quoteName(t.Owner)
	const reset = " RESET local_preload_libraries"
	return []string{"ALTER ROLE " + o + reset, "ALTER DATABASE " + d + reset, "ALTER ROLE " + o + " IN DATABASE " + d + reset}
}

// LoginSettings lists the settings that Provision resets because they end
// sessions at their start, such as "local_preload_libraries of the role app".
// conn is the superuser's, in any database.
func LoginSettings(ctx context.Context, conn *pgx.Conn) ([]string, error) {
	rows, _ := conn.Query(ctx, `select format('local_preload_libraries of the %s',
			concat_ws(' in the ', 'role ' || r.rolname, 'database ' || d.datname))
		from pg_db_role_setting s left join pg_roles r on r.oid = s.setrole left join pg_database d on d.oid = s.setdatabase
		where coalesce(r.rolname <> all ($1), true) and exists (
			select from unnest(setconfig) c where c ilike 'local\_preload\_libraries=%')
		order by 1`, ownRoles())
	settings, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("look for settings that keep sessions from beginning: %w", err)
	}
	return settings, nil
}
