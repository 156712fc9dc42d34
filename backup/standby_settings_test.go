package backup

import (
	"fmt"
	"os"
	"testing"

	"holdfast/internal/pgcontrol"
)

// TestStandbySettings compares the settings in pg_control with the server's.
func TestStandbySettings(t *testing.T) {
	c := newCluster(t)
	c.Stop()
	want := map[string]int{}
	auto, err := os.OpenFile(c.Dir+"/postgresql.auto.conf", os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	for n, name := range []string{
		"max_connections", "max_worker_processes", "max_wal_senders", "max_prepared_transactions", "max_locks_per_transaction",
	} {
		want[name] = 31 + 2*n
		fmt.Fprintf(auto, "%s = %d\n", name, want[name])
	}
	if err := auto.Close(); err != nil {
		t.Fatal(err)
	}
	c.Start()
	got, err := StandbySettings(c.Dir)
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	control, err := os.ReadFile(c.Dir + "/" + controlFile)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := pgcontrol.Settings(control[:100]); err == nil {
		t.Errorf("of a part: %v", got)
	}
}
