package cli

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"holdfast/internal/objectstore"
)

// TestRecoveryNamesFlags: the copy has no flags of serve, so the drill and the recovery sheet say which to give again.
func TestRecoveryNamesFlags(t *testing.T) {
	text, err := os.ReadFile("../docs/recovery.md")
	if err != nil {
		t.Fatal(err)
	}
	_, drill, _ := strings.Cut(string(text), "## The machine is gone")
	drill, _, _ = strings.Cut(drill, "\n## ")
	var c config
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	c.registerServe(flags)
	flags.VisitAll(func(f *pflag.Flag) {
		passing := []string{"no-first-key"} // of the first start only
		if !strings.Contains(drill, "`--"+f.Name+"`") && !slices.Contains(passing, f.Name) {
			t.Errorf("docs/recovery.md does not name --%s", f.Name)
		}
	})
	if !strings.Contains(drill, "`--yes`") {
		t.Error("docs/recovery.md does not say what scripts pass")
	}
	var sheet strings.Builder
	recoverySheet{location: "s3://backups/home"}.print(&sheet, "anchor", objectstore.S3Settings{})
	for _, want := range []string{"--config", "--object-trash-retention", "--trash-retention", "--backup-retention", "--yes"} {
		if !strings.Contains(sheet.String(), want) {
			t.Errorf("the recovery sheet does not name %s:\n%s", want, sheet.String())
		}
	}
}
