package databases

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"holdfast/engine/core"
	"holdfast/engine/model"
)

// SandboxRemove retries after every transient error: until the next start nothing
// else removes the sandbox.
func TestSandboxIsRemovedAgain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err   error
		again bool
	}{
		{nil, false},
		{model.Errorf(model.CodeConflict, "a restart is under way"), true},
		{core.ExplainDiskFull(fmt.Errorf("commit: %w", syscall.ENOSPC)), true},
		{fmt.Errorf("remove database directory: %w", syscall.EDQUOT), true},
		{model.Errorf(model.CodeForbidden, "not yours"), false},
		{errors.New("broken"), false},
	} {
		if wait, again := retryRemoval(c.err); again != c.again || again && wait <= 0 {
			t.Errorf("%v: again %t, after %s", c.err, again, wait)
		}
	}
}
