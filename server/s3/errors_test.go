package s3

import (
	"errors"
	"fmt"
	"testing"

	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/engine/objects"
)

// TestCodes checks the errors whose code decides whether a client tries again.
func TestCodes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		code string
		want int
	}{
		{&model.Error{Code: model.CodeInternal, Err: fmt.Errorf("open: %w", objects.ErrAway)}, "SlowDown", 503},
		{fmt.Errorf("store: %w", core.NoSpace(nil, "the disk is full")), "ServiceUnavailable", 503},
		{model.Errorf(model.CodeRateLimited, "too many"), "SlowDown", 503},
		{model.Errorf(model.CodeReadOnly, "another machine has taken over"), "AccessDenied", 403},
		{model.Errorf(model.CodeForbidden, "plan"), "AccessDenied", 403},
		{errors.New("disk"), "InternalError", 500},
	} {
		code := codeOf(c.err, model.ResourceObject)
		if got := statusOf(code); code != c.code || got != c.want {
			t.Errorf("%v: %s, %d; want %s, %d", c.err, code, got, c.code, c.want)
		}
	}
}
