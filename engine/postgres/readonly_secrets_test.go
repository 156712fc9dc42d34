package postgres_test

import (
	"testing"

	"holdfast/engine/model"
	"holdfast/engine/postgres/postgrestest"
)

// secretsOfCatalogs are queries of what PostgreSQL closes to ordinary roles.
var secretsOfCatalogs = []string{
	"select rolpassword from pg_authid", "table pg_authid", "select count(*) from pg_authid where rolpassword like 'SCRAM%'",
	"copy pg_authid to stdout", "select query_to_xml('table pg_authid', true, true, '')", "select table_to_xml('pg_authid', true, true, '')",
	"table pg_shadow", "select passwd from pg_shadow",
	"select subconninfo from pg_subscription", "table pg_subscription", "table pg_user_mapping",
	"table pg_statistic", "table pg_statistic_ext_data", "table pg_largeobject", "select lo_get(4711)",
	"table pg_hba_file_rules", "table pg_ident_file_mappings", "table pg_file_settings", "table pg_config",
	"select pg_read_file('PG_VERSION')", "select pg_ls_dir('.')", "select pg_current_logfile()",
	"table pg_backend_memory_contexts", "table pg_shmem_allocations", "table pg_replication_origin_status",
}

// The read-only role, and others that read or write, can read no password verifier, nor
// anything else that PostgreSQL closes to ordinary roles.
func TestReadOnlyReadsNoSecrets(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	super, owner := d.Superuser(t, "app"), d.Owner(t)
	allowed(t, super, "create foreign data wrapper w", "create server s foreign data wrapper w",
		"create user mapping for app server s options (password 'elsewhere')", "create user mapping for public server s options (password 'elsewhere')")
	allowed(t, owner, "select lo_from_bytea(4711, 'x')", "create table t as select 'in a statistic' as v", "analyze t", "select 'of the owner'")
	writer := reader{"client_write", d.AddRole(t, model.AccessWrite).Connect}
	for _, r := range append(readers(t, d), writer) {
		readsNoSecrets(t, r)
	}
}

func readsNoSecrets(t *testing.T, r reader) {
	for name, first := range map[string]string{"as it logs in": "", "switched off": "set default_transaction_read_only = off"} {
		t.Run(r.name+" "+name, func(t *testing.T) {
			ro := r.connect(t)
			allowed(t, ro, first)
			refused(t, ro, noPrivilege, secretsOfCatalogs)
			var shown int
			err := ro.QueryRow(t.Context(), `select (select count(*) from pg_user_mappings where umoptions is not null)
				+ (select count(*) from pg_roles where rolpassword <> '********')
				+ (select count(*) from pg_stat_activity where query like '%of the owner%' and usename = 'app')`).Scan(&shown)
			if err != nil || shown != 0 {
				t.Errorf("%d secrets in views, %v", shown, err)
			}
		})
	}
}
