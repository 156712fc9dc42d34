package engine

import (
	"errors"
	"strings"
	"testing"

	"holdfast/engine/core"
	"holdfast/engine/model"
)

// TestEndedWithoutAWord: a server on a full disk has no space for its last log messages.
func TestEndedWithoutAWord(t *testing.T) {
	t.Parallel()
	ended := errors.New("start postmaster: it exited with status 1")
	taken := model.Errorf(model.CodeConflict, "the name is taken")
	for _, c := range []struct {
		dir     string
		err     error
		code    model.Code
		message string
	}{
		{"/proc", ended, model.CodeForbidden, core.DiskFull}, // which never has space
		{"/proc", taken, model.CodeConflict, "the name is taken"},
		{t.TempDir(), ended, model.CodeInternal, ""},
		{t.TempDir(), errors.New("connect: FATAL: could not write init file"), model.CodeForbidden, core.DiskFull},
	} {
		e := &Engine{Core: &core.Core{Config: core.Config{DataDir: c.dir}}}
		err := core.ExplainDiskFull(e.Core.ExplainFailed(c.err))
		if model.CodeOf(err) != c.code || !strings.Contains(model.PublicMessage(err), c.message) || !errors.Is(err, c.err) {
			t.Errorf("%v in %s is %v (%s), %q", c.err, c.dir, err, model.CodeOf(err), model.PublicMessage(err))
		}
	}
}
