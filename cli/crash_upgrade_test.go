package cli_test

import (
	"os"
	"testing"

	"holdfast/engine/postgres/postgrestest"
	"holdfast/internal/testenv"
)

// upgradeMoments are the phases of an upgrade that a test can meet, and its end.
var upgradeMoments = []string{"backing_up", "copying", "preparing", "upgrading", "analyzing", "recovering", "switching", "completed"}

// TestKillDuringUpgrade kills the appliance, the postmasters, or both at every
// moment of an upgrade. The result is the old version or the new one, with the same
// data, and nothing runs on.
func TestKillDuringUpgrade(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	if postgrestest.Binaries(t).Major >= 18 {
		t.Skip("the tests run on the newest version")
	}
	m := newMachine(t)
	m.env = append(m.env, "PATH="+postgrestest.Major(t, 18).Dir+":"+os.Getenv("PATH"))
	m.start("--no-exports")
	var db database
	m.must("POST", "/databases", map[string]any{"project": m.project(), "name": "shop", "version": "15"}, &db)
	url := m.connectionURL(db.ID)
	fill(t, url)
	want := query(t, url, checksum)
	for n, moment := range upgradeMoments {
		testenv.Eventually(t, "the upgrade", func() bool { // an automatic backup may be running
			status, _ := m.do("POST", "/databases/"+db.ID+"/upgrade", map[string]any{"version": "18"})
			return status == 200
		})
		m.awaitMoment(db.ID, upgradeMoments, moment)
		m.crash(allVictims[2*(n%2)]) // the appliance, or both
		m.awaitAnswer(db.ID, url)
		version := query(t, url, "select current_setting('server_version_num')::int / 10000")
		if got := query(t, url, checksum); got != want {
			t.Fatalf("killed at %s, the data is %v, want %v", moment, got, want)
		}
		if got := m.generations(db.ID); got > 2 {
			t.Errorf("killed at %s, there are %d data directories", moment, got)
		}
		switch version {
		case "18":
			if n < len(upgradeMoments)-3 { // a moment is noticed late
				t.Errorf("killed at %s, it runs on 18", moment)
			}
			return
		case "15":
		default:
			t.Fatalf("killed at %s, it runs on %s", moment, version)
		}
	}
	t.Error("no upgrade was completed")
}
