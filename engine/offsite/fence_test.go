package offsite

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/engine/model"
	"holdfast/engine/offsite/stream"
	"holdfast/internal/durable"
	"holdfast/internal/objectstore"
)

// TestTaken: only the claim of another machine fences this one.
func TestTaken(t *testing.T) {
	t.Parallel()
	at, _ := preparedDirectory(t)
	c := at.open(t)
	cause := fmt.Errorf("%w: the key has another object", stream.ErrFenced)
	s := &Service{state: State{Repository: c.marker.Repository, Tokens: []string{"own"}, Claimed: "own"}}
	taken := func() (is bool) {
		t.Helper()
		err := s.taken(t.Context(), c, cause)
		if !errors.Is(err, stream.ErrFenced) {
			t.Errorf("the cause is not in %v", err)
		}
		return errors.As(err, new(*fencedError))
	}
	claim := func(token string) {
		t.Helper()
		if _, err := c.repository.Claim(t.Context(), time.Now(), stream.ClaimOptions{Machine: "test", Token: token, TakeOver: true}); err != nil {
			t.Fatal(err)
		}
	}
	if taken() {
		t.Error("fenced though there is no claim that can be read")
	}
	claim("own")
	if taken() {
		t.Error("fenced though the newest claim is its own")
	}
	claim("other")
	if !taken() {
		t.Error("not fenced by another machine's claim")
	}
}

// TestForeignUntilCheckpoint: of a machine that has taken over, what the store has is another one's until its first checkpoint,
// however many runs end before that, and even if the newest checkpoint is its own.
func TestForeignUntilCheckpoint(t *testing.T) {
	t.Parallel()
	at, _ := preparedDirectory(t)
	c := at.open(t)
	c.copyOnce(t, "of this machine")
	if _, err := c.repository.Claim(t.Context(), time.Now(), stream.ClaimOptions{Machine: "test", Token: "other", TakeOver: true}); err != nil {
		t.Fatal(err)
	}
	local := openBucketStore(t, t.TempDir(), nil)
	defer local.close(t)
	s := &Service{core: local.core, objects: local.Service, state: State{Format: stateFormat, Tokens: []string{"token"}, Claimed: "token", TakeOver: true}}
	for run, want := range []bool{true, true, false} {
		w, known, err := s.open(t.Context(), c, objectstore.Capabilities{Conditional: true}, stream.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if known.foreign != want || known.own == want || s.state.TakeOver {
			t.Errorf("run %d: what the store has is another machine's: %t, want %t, and this one's: %t; the next claim takes over: %t", run, known.foreign, want, known.own, s.state.TakeOver)
		}
		if run == 1 {
			err = s.checkpoint(t.Context(), w)
		}
		if err := errors.Join(err, w.Close(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTakeOverOfStopped: only a machine that is stopped can be told to go on.
func TestTakeOverOfStopped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := (State{Format: stateFormat, Fenced: &Fenced{Machine: "other"}}).Write(dir); err != nil {
		t.Fatal(err)
	}
	lock, err := durable.LockDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := TakeOver(dir); model.CodeOf(err) != model.CodeConflict || !strings.Contains(err.Error(), "stop it first") {
		t.Errorf("while it runs: %v", err)
	}
	if state, err := ReadState(dir); err != nil || state.Fenced == nil || state.TakeOver {
		t.Errorf("its state became %+v, %v", state, err)
	}
	if err := errors.Join(lock.Release(), TakeOver(dir)); err != nil {
		t.Errorf("when it is stopped: %v", err)
	}
}
