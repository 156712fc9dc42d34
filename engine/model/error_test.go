package model

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// wantInvalid expects a validation error that begins with field and contains says.
func wantInvalid(t *testing.T, err error, field, says string) {
	t.Helper()
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Code != CodeValidation {
		t.Errorf("got %v, want a validation error", err)
		return
	}
	if !strings.HasPrefix(e.Message, field) || !strings.Contains(e.Message, says) {
		t.Errorf("the error is %q, want it to begin with %q and to say %q", e.Message, field, says)
	}
}

func TestCodeOf(t *testing.T) {
	t.Parallel()
	conflict := Errorf(CodeConflict, "taken")
	for _, tt := range []struct {
		name string
		err  error
		want Code
	}{
		{"nothing wrong", nil, ""},
		{"an error", conflict, CodeConflict},
		{"a wrapped error", fmt.Errorf("create: %w", conflict), CodeConflict},
		{"one of joined errors", errors.Join(io.EOF, conflict), CodeConflict},
		{"the outer of two", &Error{Code: CodeForbidden, Err: conflict}, CodeForbidden},
		{"unclassified", io.EOF, CodeInternal},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := CodeOf(tt.err); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestErrorText(t *testing.T) {
	t.Parallel()
	err := &Error{Code: CodeInternal, Message: "cannot write", Err: io.ErrShortWrite}
	if got := err.Error(); got != "cannot write: short write" {
		t.Errorf("the log shows %q", got)
	}
	if !errors.Is(err, io.ErrShortWrite) {
		t.Error("the cause is lost")
	}
	if got := Invalid("name", "%d%% is too much", 7).Error(); got != "name: 7% is too much" {
		t.Errorf("got %q", got)
	}
	// The client's input is an argument, never the format.
	if got := Invalid("name", "%q is taken", "100%d").Error(); got != `name: "100%d" is taken` {
		t.Errorf("got %q", got)
	}
	if got := NotFound(ResourceBucket, "bucket_\x1b[2J"); got.Code != CodeNotFound || strings.Contains(got.Message, "\x1b") {
		t.Errorf("got %s %q", got.Code, got.Message)
	}
}
