package imports

import (
	"testing"

	"holdfast/engine/model"
)

// TestCutoverOfLostAuthority: a cutover that waited until its caller had lost the authority is refused before anything changes.
func TestCutoverOfLostAuthority(t *testing.T) {
	t.Parallel()
	lost := model.Errorf(model.CodeUnauthorized, "the key was revoked")
	request := &cutoverRequest{may: func() error { return lost }, answer: make(chan error, 1)}
	if done, err := (&follower{}).cutOver(t.Context(), request); done || err != nil {
		t.Errorf("done %t, %v", done, err)
	}
	if err := <-request.answer; err != lost {
		t.Errorf("the answer: %v", err)
	}
}
