package cli_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/internal/testenv"
	"holdfast/server/api/wire"
)

// TestFollowOnFullDisk fills the disk while a database follows: changes wait at the source, and a cutover is refused at once,
// so that programs can go on there. Then it fills the disk at each moment of the cutover, which is completed or refused. With
// free space everything goes on by itself, and nothing is lost.
func TestFollowOnFullDisk(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	source := startFollowed(t)
	m := newMachine(t)
	fill, empty := m.smallDisk("700")
	m.startFollower("--trash-retention", "0s")
	w := &modelWriter{rows: map[int64]int64{}}
	for n, moment := range followMoments[:4] {
		i := m.follow(source.replication)
		w.begin(t, source.owner)
		before := w.written()
		testenv.Eventually(t, "more rows", func() bool { return w.written() > before+200 })
		if n == 0 {
			fill()
			m.awaitImport(i.ID, func(i wire.Import) bool {
				return i.Following.Trouble != nil && strings.Contains(*i.Following.Trouble, "disk is nearly full")
			})
			before = w.written()
			testenv.Eventually(t, "rows at the source", func() bool { return w.written() > before+200 })
			w.end()
			began := time.Now()
			status, e := m.do("POST", "/imports/"+i.ID+"/cutover", nil)
			if took := time.Since(began); status < 400 || status == 500 || !strings.Contains(e.Error.Message, "disk is") || took > 30*time.Second {
				t.Errorf("a cutover on a full disk: %d after %v: %s", status, took, e.Error.Message)
			}
		} else {
			w.end()
			m.cutOver(i.ID)
			met := m.catchImport(i.ID, func(i wire.Import) bool { return followMoment(i) >= slices.Index(followMoments, moment) })
			fill()
			t.Logf("filled when it was %s (%s)", met.Status, met.Phase)
			testenv.Poll(5*time.Second, func() bool { // it cannot be completed, or it is
				var now wire.Import
				m.must("GET", "/imports/"+i.ID, nil, &now)
				return followMoment(now) == len(followMoments)-1
			})
		}
		empty()
		m.endFollow(i.ID)
		w.compare(t, m.connectionURL(i.DatabaseID))
		if got := query(t, source.owner, "select count(*) from pg_replication_slots where slot_name like 'holdfast_imp%'"); got != "0" {
			t.Errorf("there are %s slots left", got)
		}
		m.must("DELETE", "/databases/"+i.DatabaseID, nil, nil)
	}
}
