package model

import (
	"strings"
	"testing"
)

func TestValidateLabel(t *testing.T) {
	t.Parallel()
	for _, name := range []string{DefaultName, "a", "1", "Acme Inc.", "a.b_c-d", "a  b", "a-", strings.Repeat("a", 63)} {
		if err := ValidateLabel("name", name); err != nil {
			t.Errorf("%q is refused: %v", name, err)
		}
	}
	for _, name := range []string{
		"", " ", " a", "a ", "-a", ".", "_a", strings.Repeat("a", 64), "a\n", "a\tb", "a\x00b", "é", "a/b", "a'b", "<b>", "a\u202eb", "\xff",
	} {
		wantInvalid(t, ValidateLabel("name", name), "name: ", "1 to 63")
	}
}
