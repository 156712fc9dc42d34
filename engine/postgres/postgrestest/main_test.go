package postgrestest_test

import (
	"os"
	"testing"

	"holdfast/engine/postgres/postgrestest"
)

func TestMain(m *testing.M) { postgrestest.Main(m) }

func TestOrdinaryUser(t *testing.T) {
	if os.Geteuid() == 0 || os.Getuid() == 0 || os.Getegid() == 0 {
		t.Error("still root")
	}
	if groups, err := os.Getgroups(); err != nil || len(groups) > 0 && groups[0] == 0 {
		t.Errorf("groups %v, %v", groups, err)
	}
	if _, err := os.ReadDir("/proc/self/fd"); err != nil {
		t.Errorf("/proc/self: %v", err)
	}
	if err := os.WriteFile(t.TempDir()+"/x", nil, 0o600); err != nil {
		t.Error(err)
	}
}

func TestInstance(t *testing.T) {
	d := postgrestest.Instance(t)
	for role, conn := range map[string]interface{ IsClosed() bool }{
		"owner": d.Owner(t), "read-only": d.ReadOnly(t), "superuser": d.Superuser(t, "postgres"),
	} {
		if conn.IsClosed() {
			t.Errorf("%s: closed", role)
		}
	}
}
