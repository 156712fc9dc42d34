package postgres

import (
	"fmt"
	"testing"
)

func TestLockTree(t *testing.T) {
	t.Parallel()
	session := func(pid int32, blockers ...int32) LockedSession {
		return LockedSession{Session: Session{SessionID: SessionID{PID: pid}}, blockers: blockers}
	}
	for _, c := range []struct {
		sessions []LockedSession
		want     string
	}{
		{nil, ""},
		{[]LockedSession{session(1), session(2)}, ""},
		{[]LockedSession{session(3, 2), session(1), session(2, 1, 1), session(4, 1, 2)}, "1/0 2/1 3/2 4/2 "},
		{[]LockedSession{session(1, 99)}, "1/0 "},                               // by a vacuum
		{[]LockedSession{session(1, 2), session(2, 1)}, "1/0 2/1 "},             // a deadlock
		{[]LockedSession{session(5, 4), session(4, 0), session(6)}, "4/0 5/1 "}, // 0: a prepared transaction
	} {
		got := ""
		for _, s := range lockTree(c.sessions) {
			got += fmt.Sprintf("%d/%d ", s.PID, s.Depth)
		}
		if got != c.want {
			t.Errorf("%v: %q, want %q", c.sessions, got, c.want)
		}
	}
}
