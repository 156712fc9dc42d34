package cli_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/internal/testenv"
)

// TestChangeOnFullDisk fills the disk in the middle of a rotation of the password. If the server has the new password, the
// rotation is acknowledged, although its end cannot be recorded yet; if the server died of it, the old one stays in force.
func TestChangeOnFullDisk(t *testing.T) {
	t.Parallel()
	for _, dies := range []bool{false, true} {
		t.Run(map[bool]string{false: "applied", true: "not applied"}[dies], func(t *testing.T) {
			t.Parallel()
			// Whether the end of the change still finds a page in the metadata is a matter of chance.
			for attempt := 1; !changeOnFullDisk(t, dies); attempt++ {
				if attempt == 10 {
					t.Fatal("each time there was space to record the end of the change")
				}
			}
		})
	}
}

// changeOnFullDisk rotates a password while the disk is full, and reports whether its end could not be recorded at once.
func changeOnFullDisk(t *testing.T, dies bool) (reached bool) {
	t.Helper()
	m := newMachine(t)
	fill, empty := m.smallDisk("400")
	m.start()
	db := m.createDatabase("shop")
	before := m.connectionURL(db.ID)
	server := m.postmasters()[0]
	rotation := m.beginRotation(db.ID, server)
	m.exhaustMetadata(fill)
	end := syscall.SIGCONT
	if dies {
		end = syscall.SIGKILL
	}
	if err := syscall.Kill(server, end); err != nil {
		t.Fatal(err)
	}
	for over := false; !over; {
		fill() // also what a server that ends has freed
		select {
		case <-rotation.over:
			over = true
		case <-time.After(time.Millisecond):
		}
	}
	empty()
	log := m.log.String()
	if dies {
		if rotation.status != http.StatusInsufficientStorage && rotation.status != http.StatusConflict {
			t.Fatalf("%d %+v\n%s", rotation.status, rotation.envelope.Error, log)
		}
	} else if rotation.status != http.StatusOK {
		t.Fatalf("%d %+v\n%s", rotation.status, rotation.envelope.Error, log)
	}
	m.awaitAvailable(db.ID)
	after := m.connectionURL(db.ID)
	if (after == before) != dies {
		t.Errorf("the connection was %s and is %s", before, after)
	}
	if n := query(t, after, "select 1"); n != "1" {
		t.Errorf("it answers %s", n)
	}
	if !dies {
		conn, err := pgx.Connect(t.Context(), before)
		if err == nil {
			conn.Close(t.Context())
		}
		if !isWrongPassword(err) {
			t.Errorf("the old password: %v", err)
		}
	}
	testenv.Eventually(t, "another rotation", func() bool {
		status, _ := m.do("POST", "/databases/"+db.ID+"/rotate-password", nil)
		return status == http.StatusOK
	})
	want := map[bool]int{false: 2, true: 1}[dies]
	testenv.Eventually(t, "the audit log's entries", func() bool {
		var entries []struct{ Outcome string }
		m.must("GET", "/account/audit-logs?action=database.rotate_password&outcome=success", nil, &entries)
		return len(entries) == want
	})
	return dies || strings.Contains(log, "no disk space to record the end of a change")
}

// rotation is a request that was sent.
type rotation struct {
	over chan struct{} // closed when it was answered
	// status and envelope are its answer.
	status   int
	envelope envelope
}

// beginRotation begins a rotation of the password while the server is paused, and returns once its record is durable.
func (m *machine) beginRotation(id string, server int) *rotation {
	m.t.Helper()
	changedAt := func() string {
		var db struct {
			UpdatedAt string `json:"updated_at"`
		}
		m.must("GET", "/databases/"+id, nil, &db)
		return db.UpdatedAt
	}
	before := changedAt()
	if err := syscall.Kill(server, syscall.SIGSTOP); err != nil {
		m.t.Fatal(err)
	}
	r := &rotation{over: make(chan struct{})}
	go func() {
		defer close(r.over)
		r.status, r.envelope = m.do("POST", "/databases/"+id+"/rotate-password", nil)
	}()
	testenv.Eventually(m.t, "the beginning of the rotation", func() bool { return changedAt() != before })
	return r
}

// exhaustMetadata fills the disk until the metadata have no page left either.
func (m *machine) exhaustMetadata(fill func()) {
	m.t.Helper()
	project := m.project()
	n := 0
	testenv.Eventually(m.t, "the metadata to be full", func() bool {
		fill()
		n++
		status, _ := m.do("POST", "/buckets", json.RawMessage(fmt.Sprintf(`{"project": %q, "name": "bucket-%d"}`, project, n)))
		return status == http.StatusInsufficientStorage
	})
}
