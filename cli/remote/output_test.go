package remote

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// hostile is text from an appliance, or a name, that would control a terminal:
// it changes the title and hides output.
const hostile = "shop\x1b]0;owned\x07\u009b2J\r\u202eevil"

func TestTerminalDoesNotObeyTheAppliance(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	cmd := &cobra.Command{}
	cmd.SetOut(&out)
	person := &task{session: &session{}, cmd: cmd}
	if err := person.show(nil, func(w io.Writer) { fmt.Fprintf(w, "created %s\nat once\n", hostile) }); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); strings.ContainsAny(text, "\x1b\x07\u009b\r\u202e") || !strings.HasPrefix(text, "created shop") {
		t.Errorf("%q", text)
	}
	if !strings.HasSuffix(out.String(), "evil\nat once\n") {
		t.Errorf("lines are not kept: %q", out.String())
	}
}
