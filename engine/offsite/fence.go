package offsite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"holdfast/blobstore"
	"holdfast/engine/model"
	"holdfast/engine/offsite/stream"
	"holdfast/internal/durable"
)

// fencedError means that another machine has taken over from this one.
type fencedError struct{ by stream.Claim }

func (e *fencedError) Error() string { return stream.ErrFenced.Error() + ": " + e.by.Machine }

func (e *fencedError) Unwrap() error { return stream.ErrFenced }

// otherMachineError means that the copy is that of a machine from which this one did not take over: its operator named the wrong
// prefix, or has imported the other's archive here.
type otherMachineError struct {
	machine string
	needs   bool // objects of this appliance are in this copy only
}

func (e *otherMachineError) Error() string {
	if e.needs {
		return fmt.Sprintf("the store has the copy of another machine, %q, so nothing is copied there, and large objects of this one are in it only: they can be read; start without "+
			"--objects-local-size until they are all here, and with a prefix of its own then, which `holdfast offsite init` prepares", e.machine)
	}
	return fmt.Sprintf("the store has the copy of another machine, %q: give this one a prefix of its own with `holdfast offsite init`, "+
		"or bring that machine's data here with `holdfast recover`", e.machine)
}

// hasAwayIn reports whether the only bytes of an object are in a repository.
func (s *Service) hasAwayIn(repository string) (bool, error) {
	bodies, err := awayBodies(s.core)
	return slices.ContainsFunc(bodies, func(a blobstore.Away) bool {
		_, err := locate(repository, a)
		return err == nil
	}), err
}

// message is what people are told who try to change something.
func (f Fenced) message() string {
	return fmt.Sprintf("this machine is read-only: %s took over from it on %s; work there. To go on with this machine instead, stop the other one "+
		"and this one, run `holdfast offsite take-over` here and start this one again", f.Machine, f.At.UTC().Format(time.DateTime+" UTC"))
}

// taken returns the error for a claim or an object that another machine has made: a fencedError
// if that machine has claimed the copy and this one wrote to the repository before.
//
// While nobody else has claimed it, the run has failed like any other, and the next one claims an
// epoch with keys of its own: of two machines with a copied disk, that claim fences the other.
func (s *Service) taken(ctx context.Context, c *connection, cause error) error {
	ctx, cancel := context.WithTimeout(ctx, endPatience)
	defer cancel()
	h, err := c.repository.History(ctx)
	if err != nil {
		return errors.Join(cause, err)
	}
	by, state := h.Tip(), s.currentState()
	if slices.Contains(state.Tokens, by.Token) {
		return fmt.Errorf("the store has objects that this machine did not write, but no other machine's claim: %w", cause)
	}
	if state.Repository != c.marker.Repository {
		needs, err := s.hasAwayIn(c.marker.Repository)
		return errors.Join(&otherMachineError{machine: by.Machine, needs: needs}, err, fmt.Errorf("%s: %w", s.config.URL, cause))
	}
	return &fencedError{by}
}

// fence makes the appliance read-only for good, because another machine has taken over.
func (s *Service) fence(by stream.Claim) {
	f := &Fenced{Machine: by.Machine, Epoch: by.Epoch.String(), At: by.Time}
	s.core.SetReadOnly(f.message())
	s.core.Log.Error("another machine has taken over: this one is read-only and copies nothing any more", "machine", f.Machine, "since", f.At)
	if err := s.setState(func(state *State) { state.Fenced = f }); err != nil {
		s.core.Log.Error("record that another machine has taken over", "error", err)
		s.mu.Lock()
		s.state.Fenced = f
		s.mu.Unlock()
	}
	call := s.core.System(model.ActionApplianceFenced, "", model.Resource{})
	call.Note("machine", f.Machine)
	s.core.Finish(call, nil)
	s.core.Emit(model.Event{
		Type: model.EventOffsiteFenced, Message: fmt.Sprintf("%s has taken over: this machine is read-only and copies nothing off-site any more.", f.Machine),
	})
	s.core.Background(s.databases.MakeReadOnly)
}

// TakeOver lets a machine that was fenced go on: its next start takes over from the machine
// that did. What that one has stored since is not part of the copy any more. The appliance must be stopped: a running one
// would write its own state over this.
func TakeOver(dir string) (err error) {
	lock, err := durable.LockDir(dir)
	if errors.Is(err, durable.ErrLocked) {
		return model.Errorf(model.CodeConflict, "the appliance in %s is running: stop it first, then say this again and start it", dir)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	state, err := ReadState(dir)
	if err != nil {
		return err
	}
	if state.Fenced == nil {
		return model.Errorf(model.CodeConflict, "no other machine has taken over from the one in %s, as far as it knows: just start it", dir)
	}
	state.Fenced, state.TakeOver = nil, true
	return state.Write(dir)
}
