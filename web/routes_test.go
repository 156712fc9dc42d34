package web

import (
	"slices"
	"testing"

	"holdfast/engine/model"
)

// personal are the actions of the console that no key can perform, and why.
func personal() map[model.Action]string {
	return map[model.Action]string{
		model.ActionSessionCreate: "signing in takes a password",
		model.ActionUserCreate:    "the link of the set-up page stands in place of a session",
		model.ActionSignOut:       "it ends the session of the browser that asks",
		model.ActionSignOutAll:    "it ends the sessions of the person who asks",
		model.ActionUserPassword:  "it takes the person's old password",
		model.ActionDeviceReview:  "a tool without a key asks a person for one",
		model.ActionDeviceApprove: "a tool without a key asks a person for one",
		model.ActionDeviceDeny:    "a tool without a key asks a person for one",
		model.ActionKeyDangerous:  "only a person lets a key delete",
	}
}

// TestKeysCanDoWhatTheConsoleDoes walks the console's routes: each performs an operation of the API, with a scope that a
// key can hold, or is one of the few that belong to people.
func TestKeysCanDoWhatTheConsoleDoes(t *testing.T) {
	t.Parallel()
	left := personal()
	check := func(pattern string, action model.Action) {
		if _, is := personal()[action]; is {
			delete(left, action)
			return
		}
		i := slices.IndexFunc(model.Operations(), func(op model.Operation) bool { return op.Action == action })
		if i < 0 || !slices.Contains(model.PresetFullAccess.Scopes(), model.Operations()[i].Scope) {
			t.Errorf("%s: no key can perform %s", pattern, action)
		}
	}
	for _, r := range openRoutes() {
		if r.action != "" {
			check(r.pattern, r.action)
		}
	}
	for _, r := range routes() {
		check(r.pattern, r.action)
	}
	for action := range left {
		t.Errorf("no route performs %s", action)
	}
	for _, op := range model.ConsoleOperations() {
		if personal()[op.Action] == "" {
			t.Errorf("%s belongs to people without a reason", op.Action)
		}
	}
}
