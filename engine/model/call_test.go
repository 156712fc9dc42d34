package model

import (
	"errors"
	"testing"
)

func TestCallHolds(t *testing.T) {
	t.Parallel()
	reader := &Key{Scopes: []Scope{ScopeDatabaseRead}}
	for _, tt := range []struct {
		name string
		call Call
		want bool
	}{
		{"a key with the scope", Call{Actor: Actor{Type: ActorKey}, Key: reader}, true},
		{"a key without any", Call{Actor: Actor{Type: ActorKey}, Key: &Key{}}, false},
		{"a key that was not found", Call{Actor: Actor{Type: ActorKey}}, false},
		{"a person who signed in", Call{Actor: Actor{Type: ActorUser}, Role: RoleViewer}, true},
		{"a person who did not", Call{Actor: Actor{Type: ActorUser}}, false},
		{"the operator", Call{Actor: Actor{Type: ActorOperator}}, true},
		{"the appliance", Call{Actor: Actor{Type: ActorSystem}}, true},
		{"a person with a key is bound by it", Call{Actor: Actor{Type: ActorUser}, Key: &Key{}}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := tt.call.Holds(ScopeDatabaseRead); got != tt.want {
				t.Errorf("got %v", got)
			}
		})
	}
	if (&Call{Key: reader}).Holds(ScopeDatabaseDelete) {
		t.Error("a key holds what it was not granted")
	}
}

func TestCallNote(t *testing.T) {
	t.Parallel()
	var call Call
	call.Note("a", "1")
	call.Note("b", "2")
	call.Note("a", "3")
	if len(call.Details) != 2 || call.Details["a"] != "3" || call.Details["b"] != "2" {
		t.Errorf("the details are %v", call.Details)
	}
}

func TestOutcomeOf(t *testing.T) {
	t.Parallel()
	if got := OutcomeOf(nil); got != OutcomeSuccess {
		t.Errorf("nil is %s", got)
	}
	if got := OutcomeOf(errors.New("disk full")); got != OutcomeError {
		t.Errorf("an unclassified error is %s", got)
	}
	for code, want := range map[Code]Outcome{
		CodeUnauthorized: OutcomeDenied, CodeInsufficientScope: OutcomeDenied, CodeDangerousNotAllowed: OutcomeDenied,
		CodeForbidden: OutcomeDenied, CodeRateLimited: OutcomeDenied,
		CodeNotFound: OutcomeError, CodeConflict: OutcomeError, CodeValidation: OutcomeError, CodeInternal: OutcomeError,
	} {
		if got := OutcomeOf(Errorf(code, "x")); got != want {
			t.Errorf("%s is %s, want %s", code, got, want)
		}
	}
}
