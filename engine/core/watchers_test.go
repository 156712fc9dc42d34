package core

import (
	"fmt"
	"testing"

	"holdfast/engine/model"
)

// TestWatchers fills the share of a key, of an address and of the appliance, and frees them.
func TestWatchers(t *testing.T) {
	t.Parallel()
	by := func(key, ip string) *model.Call {
		return &model.Call{Actor: model.Actor{Type: model.ActorKey, ID: key}, Organization: "org of " + ip, IP: ip}
	}
	var w Watchers
	var releases []func()
	fill := func(n int, call func(i int) *model.Call) {
		t.Helper()
		for i := range n {
			release, err := w.Watch(call(i))
			if err != nil {
				t.Fatalf("watcher %d: %v", i, err)
			}
			releases = append(releases, release)
		}
	}
	refused := func(call *model.Call) {
		t.Helper()
		if _, err := w.Watch(call); model.CodeOf(err) != model.CodeRateLimited {
			t.Errorf("%v", err)
		}
	}
	fill(WatchersPerActor, func(int) *model.Call { return by("key_1", "192.0.2.1") })
	refused(by("key_1", "192.0.2.2"))
	fill(WatchersPerVisitor-WatchersPerActor, func(i int) *model.Call { return by(fmt.Sprint("key_a", i), "192.0.2.1") })
	refused(by("key_2", "192.0.2.1"))
	fill(WatchersInAll-WatchersPerVisitor, func(i int) *model.Call { return by(fmt.Sprint("key_b", i), fmt.Sprint("198.51.100.", i)) })
	refused(by("key_3", "203.0.113.1"))
	for _, release := range releases {
		release()
		release()
	}
	if w.all != 0 || len(w.count) != 0 {
		t.Errorf("%d watchers are left: %v", w.all, w.count)
	}
	fill(1, func(int) *model.Call { return by("key_1", "192.0.2.1") })
	one := func(i int) *model.Call {
		call := by(fmt.Sprint("key_c", i), fmt.Sprint("203.0.113.", i))
		call.Organization = "org_1"
		return call
	}
	fill(WatchersPerOrganization, one)
	refused(one(WatchersPerOrganization))
	w.End()
	w.End()
	<-w.Ended()
}
