package postgres_test

import (
	"os/exec"
	"strings"
	"testing"

	"holdfast/engine/postgres/postgrestest"
)

// A dump that the owner makes names nothing of the appliance's: whoever
// restores it elsewhere could not carry that out.
func TestOwnersDumpIsPlain(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	allowed(t, d.Owner(t), "create table kept (n int)")
	cmd := exec.CommandContext(t.Context(), d.Spec.Bin.Tool("pg_dump"), "--no-owner", "--dbname", d.URL(d.Tenant.Owner, d.Tenant.OwnerPassword))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if !strings.Contains(string(out), "CREATE TABLE public.kept") {
		t.Errorf("the table is not in the dump: %s", out)
	}
	for _, word := range []string{"GRANT", "REVOKE", "pg_catalog.lo_", "readonly", "holdfast"} {
		if strings.Contains(string(out), word) {
			t.Errorf("%s is in the dump: %s", word, out)
		}
	}
}
