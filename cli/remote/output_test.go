package remote

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"holdfast/cli/client"
)

// hostile is what an appliance, or who has given a thing its name, would like
// a terminal to do: another title, a line that hides what was said.
const hostile = "shop\x1b]0;owned\x07\u009b2J\r\u202eevil"

func harmless(t *testing.T, where, text string) {
	t.Helper()
	if strings.ContainsAny(text, "\x1b\x07\u009b\r\u202e") || !strings.Contains(text, "shop") {
		t.Errorf("%s: %q", where, text)
	}
}

func TestTerminalDoesNotObeyTheAppliance(t *testing.T) {
	t.Parallel()
	for _, code := range []client.Code{
		client.CodeForbidden, client.CodeInsufficientScope, client.CodeNotFound, client.CodeConflict, client.CodeValidation,
		client.CodeRateLimited, "new_code",
	} {
		err := explain(&client.Error{Code: code, Message: hostile}, "http://127.0.0.1")
		harmless(t, string(code), err.Error())
	}
	harmless(t, "internal", explain(&client.Error{Code: client.CodeInternal, RequestID: hostile}, "http://127.0.0.1").Error())
	harmless(t, "not an API", explain(fmt.Errorf("%w: %s", client.ErrNotAPI, hostile), "http://127.0.0.1").Error())

	var out bytes.Buffer
	cmd := &cobra.Command{}
	cmd.SetOut(&out)
	person := &task{session: &session{}, cmd: cmd}
	if err := person.show(nil, func(w io.Writer) { fmt.Fprintf(w, "created %s\nat once\n", hostile) }); err != nil {
		t.Fatal(err)
	}
	harmless(t, "a result", out.String())
	if !strings.HasSuffix(out.String(), "evil\nat once\n") {
		t.Errorf("lines are not kept: %q", out.String())
	}
}
