package cli

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast/cli/remote"
	"holdfast/engine/model"
	"holdfast/internal/objectstore"
)

// recoverySheet is what a person keeps in a safe. With it and credentials for the store, the appliance can be recovered.
type recoverySheet struct {
	location    string
	passphrases []model.Secret // the present one first
	recipients  []string       // of the present master key, in place of a passphrase
	earlier     bool           // an age identity opens what was copied earlier
}

// errNoSheet refuses --json without --yes.
func errNoSheet() error {
	return usageError{errors.New("--json prints no recovery sheet; --yes says that you have one")}
}

// words are what the person types to show that the sheet is kept.
func words() []string {
	return strings.Fields(`anchor basalt candle dolphin ember falcon garnet harbor island jasmine kettle lantern
		meadow nutmeg orchard pebble quarry raven saddle timber umbrella velvet willow yonder`)
}

// confirm prints the sheet and waits for its word, unless yes is set.
func (s recoverySheet) confirm(cmd *cobra.Command, yes bool) error {
	all := words()
	word := all[rand.IntN(len(all))]
	settings, err := objectstore.ReadS3Settings(os.Getenv)
	if err != nil {
		return err
	}
	if err := remote.Print(cmd.OutOrStdout(), func(w io.Writer) { s.print(w, word, settings) }); err != nil {
		return err
	}
	if yes {
		return nil
	}
	typed, err := remote.Ask(cmd, "Print the sheet or write it down. Which word is on it? ", "--yes says that the sheet is kept")
	if err != nil {
		return err
	}
	if !strings.EqualFold(strings.TrimSpace(typed), word) {
		return errors.New("that is not the word on the sheet; nothing was changed")
	}
	return nil
}

func (s recoverySheet) print(w io.Writer, word string, store objectstore.S3Settings) {
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(w, "  %-14s%s\n", name, value)
		}
	}
	rule := strings.Repeat("─", 72)
	fmt.Fprintf(w, "%s\nRECOVERY SHEET of a holdfast appliance, %s\nKeep it in a safe, not on the machine that it brings back.\n\n", rule, time.Now().Format(time.DateOnly))
	line("store", s.location)
	if strings.HasPrefix(s.location, "s3:") {
		line("endpoint", orAmazon(store.Endpoint))
		line("region", store.Region)
		line("access key", store.AccessKey)
		line("", "its secret is not printed: add it, or how you get another")
	}
	s.printKeys(line)
	line("word", word)
	fmt.Fprintf(w, "\nOn a new machine with holdfast and PostgreSQL, %s:\n\n", s.files())
	if strings.HasPrefix(s.location, "s3:") {
		fmt.Fprintf(w, "  export AWS_ACCESS_KEY_ID=… AWS_SECRET_ACCESS_KEY=… AWS_REGION=%s", store.Region)
		if store.Endpoint != "" {
			fmt.Fprintf(w, " AWS_ENDPOINT_URL=%s", store.Endpoint)
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "  holdfast recover %s --data-dir %s%s\n\n", s.location, rootDataDir, s.flags())
	fmt.Fprintf(w, "It asks before it begins; scripts pass --yes. Add the flags that serve had,\nwhich are not in the copy, or --config with its file: addresses and ports,\n"+
		"--tls-…, --object-trash-retention, --trash-retention, --backup-retention,\n--webhook-allow-private and others.\n%s\n\n", rule)
}

// printKeys prints what opens the copy.
func (s recoverySheet) printKeys(line func(name, value string)) {
	if len(s.recipients) > 0 {
		line("recipients", strings.Join(s.recipients, ", "))
		line("identity", "the age identity of one of them, which is not printed: add it")
	}
	name := "passphrase"
	for _, p := range s.passphrases {
		line(name, p.Reveal())
		name = "earlier one"
	}
	if s.earlier {
		line("earlier", "the age identity that opened the copy before, which is not printed: add it")
	}
}

const (
	sheetPassphrases = "offsite.passphrase"
	sheetIdentities  = "offsite.identity"
)

// files says which files the command line of the sheet needs.
func (s recoverySheet) files() string {
	var needed []string
	if len(s.passphrases) > 0 {
		needed = append(needed, "with the passphrase in "+filepath.Join("/root", sheetPassphrases))
	}
	if len(s.recipients) > 0 || s.earlier {
		needed = append(needed, "with the identity in "+filepath.Join("/root", sheetIdentities))
	}
	text := strings.Join(needed, " and ")
	if len(s.passphrases) > 1 || s.earlier && len(s.recipients) > 0 {
		text += ", each in a line"
	}
	return text
}

// flags returns the flags for these files.
func (s recoverySheet) flags() (flags string) {
	if len(s.passphrases) > 0 {
		flags += " --passphrase-file " + filepath.Join("/root", sheetPassphrases)
	}
	if len(s.recipients) > 0 || s.earlier {
		flags += " --identity " + filepath.Join("/root", sheetIdentities)
	}
	return flags
}

func orAmazon(endpoint string) string {
	if endpoint == "" {
		return "Amazon S3"
	}
	return endpoint
}
