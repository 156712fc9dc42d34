package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"filippo.io/age"
	"github.com/spf13/cobra"

	"holdfast/cli/remote"
	"holdfast/engine/model"
	"holdfast/engine/offsite"
	"holdfast/internal/objectstore"
	"holdfast/internal/sealed"
)

// initializer is a run of offsite init.
type initializer struct {
	copyCommand
	recipients []string
	yes        bool
}

func newOffsiteInit() *cobra.Command {
	i := &initializer{}
	cmd := &cobra.Command{
		Use: "init URL", Short: "Prepare a store for the copy of an appliance",
		Args: exactURL,
		Long: `Prepare an empty prefix of a bucket, or an empty directory, for the copy of an appliance. The store is tried first, and
what it can do is said. A random master key encrypts everything that leaves the machine; it is stored beside the copy, encrypted
with the passphrase, or for age recipients.

A recovery sheet is printed, for a safe: whoever has it and credentials for the store can bring the appliance back, and without it
nobody can. Nothing is prepared before you typed the word on the sheet, or said --yes.`,
		Example: "  holdfast offsite init s3://backups/home --passphrase-file /root/offsite.passphrase\n" +
			"  holdfast offsite init file:///mnt/usb/holdfast --recipient age1…",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := i.load(cmd.Flags()); err != nil {
				return err
			}
			return i.run(cmd.Context(), cmd, args[0])
		},
	}
	i.registerCommon(cmd.Flags())
	cmd.Flags().StringVar(&i.PassphraseFile, "passphrase-file", "", "file with the passphrase in its first line")
	cmd.Flags().StringSliceVar(&i.recipients, "recipient", nil, "age recipient (age1…) in place of a passphrase; can be repeated")
	cmd.Flags().BoolVar(&i.json, "json", false, "print JSON, without the sheet")
	cmd.Flags().BoolVarP(&i.yes, "yes", "y", false, "do not ask for the word on the sheet")
	return cmd
}

// prepared is the result of offsite init.
type prepared struct {
	URL string `json:"url"`
	offsite.Initialized
	Capabilities offsite.Capabilities `json:"capabilities"`
}

func (i *initializer) run(ctx context.Context, cmd *cobra.Command, location string) error {
	at := offsite.Location{URL: location}
	recipients, passphrase, err := i.wrapping()
	if err != nil {
		return err
	}
	if recipients == nil {
		if at.Keys, err = i.keys(); err != nil {
			return err
		}
	}
	if err := i.becomeOwner(location); err != nil {
		return err
	}
	there, err := offsite.IsInitialized(ctx, location)
	if err != nil {
		return err
	}
	if there {
		return model.Errorf(model.CodeConflict, "%s has the copy of an appliance already: choose an empty prefix", location)
	}
	made := prepared{URL: location}
	if made.Capabilities, err = offsite.Probe(ctx, location); err != nil {
		return err
	}
	if !i.json {
		if err := remote.Print(cmd.OutOrStdout(), func(w io.Writer) { showCapabilities(w, made.Capabilities) }); err != nil {
			return err
		}
		if err := i.confirm(cmd, location, passphrase); err != nil {
			return err
		}
	} else if !i.yes {
		return usageError{errors.New("--json prints no recovery sheet; --yes says that you have one")}
	}
	if made.Initialized, err = offsite.Initialize(ctx, at, recipients, time.Now()); err != nil {
		return err
	}
	return printResult(cmd.OutOrStdout(), i.json, made, func(w io.Writer, p prepared) {
		fmt.Fprintf(w, "%s is prepared; `holdfast serve --offsite %s` with %s begins to copy\n", p.URL, p.URL, i.serveFlag())
	})
}

// serveFlag names the flag by which serve gets the key.
func (i *initializer) serveFlag() string {
	if len(i.recipients) > 0 {
		return "--offsite-identity FILE"
	}
	return "--offsite-passphrase-file FILE"
}

// wrapping returns the recipients, nil for a passphrase, which it returns too.
func (i *initializer) wrapping() (recipients []age.Recipient, passphrase string, err error) {
	switch {
	case (i.PassphraseFile == "") == (len(i.recipients) == 0):
		return nil, "", usageError{errors.New("say either --passphrase-file or --recipient: without one of them the copy cannot be encrypted")}
	case i.PassphraseFile == "":
		recipients, err = sealed.ParseRecipients(strings.Join(i.recipients, "\n"))
		if err != nil {
			err = usageError{fmt.Errorf("recipient: %w", err)}
		}
		return recipients, "", err
	}
	text, err := os.ReadFile(i.PassphraseFile)
	if err != nil {
		return nil, "", usageError{fmt.Errorf("passphrase-file: %w", err)}
	}
	passphrase, _, _ = strings.Cut(string(text), "\n")
	return nil, strings.TrimRight(passphrase, "\r"), nil
}

func showCapabilities(w io.Writer, c offsite.Capabilities) {
	say := func(good bool, what, yes, no string) {
		if good {
			no = yes
		}
		fmt.Fprintf(w, "  %-20s%s\n", what, no)
	}
	fmt.Fprintln(w, "The store answers.")
	say(c.Conditional, "conditional create", "yes: two machines cannot write one object", "no: machines agree by names of their own instead")
	say(c.Checksums, "checksums", "yes: the store checks what it receives", "no: damage on the way is found when the copy is verified")
	say(c.Versioned, "versions", "yes", "no")
	say(c.Lock, "Object Lock", "yes: objects are locked for the retention", "no: whoever has the right to delete can delete the copy")
	say(c.MayDelete, "right to delete", "yes: the appliance does not need it; credentials without it are safer", "no: `holdfast offsite prune` needs credentials of its own")
	if c.ClockSkewSeconds > 5 || c.ClockSkewSeconds < -5 {
		fmt.Fprintf(w, "  %-20s%+.0f s beside this machine's: set both by NTP\n", "the store's clock", c.ClockSkewSeconds)
	}
	fmt.Fprintln(w)
}

// words are what the person types to show that the sheet is kept.
func words() []string {
	return strings.Fields(`anchor basalt candle dolphin ember falcon garnet harbor island jasmine kettle lantern
		meadow nutmeg orchard pebble quarry raven saddle timber umbrella velvet willow yonder`)
}

// confirm prints the recovery sheet and waits for its word.
func (i *initializer) confirm(cmd *cobra.Command, location, passphrase string) error {
	all := words()
	word := all[rand.IntN(len(all))]
	settings, err := objectstore.ReadS3Settings(os.Getenv)
	if err != nil {
		return err
	}
	if err := remote.Print(cmd.OutOrStdout(), func(w io.Writer) { i.sheet(w, location, passphrase, word, settings) }); err != nil {
		return err
	}
	if i.yes {
		return nil
	}
	typed, err := remote.Ask(cmd, "Print the sheet or write it down. Which word is on it? ", "--yes says that the sheet is kept")
	if err != nil {
		return err
	}
	if !strings.EqualFold(strings.TrimSpace(typed), word) {
		return errors.New("that is not the word on the sheet; nothing was prepared")
	}
	return nil
}

func (i *initializer) sheet(w io.Writer, location, passphrase, word string, s objectstore.S3Settings) {
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(w, "  %-14s%s\n", name, value)
		}
	}
	rule := strings.Repeat("─", 72)
	fmt.Fprintf(w, "%s\nRECOVERY SHEET of a holdfast appliance, %s\nKeep it in a safe, not on the machine that it brings back.\n\n", rule, time.Now().Format(time.DateOnly))
	line("store", location)
	flag, file := "--passphrase-file", "offsite.passphrase"
	if strings.HasPrefix(location, "s3:") {
		line("endpoint", orAmazon(s.Endpoint))
		line("region", s.Region)
		line("access key", s.AccessKey)
		line("", "its secret is not printed: add it, or how you get another")
	}
	if len(i.recipients) > 0 {
		line("recipients", strings.Join(i.recipients, ", "))
		line("identity", "the age identity of one of them, which is not printed: add it")
		flag, file = "--identity", "offsite.identity"
	} else {
		line("passphrase", passphrase)
	}
	line("word", word)
	fmt.Fprintf(w, "\nOn a new machine with holdfast and PostgreSQL:\n\n")
	if strings.HasPrefix(location, "s3:") {
		fmt.Fprintf(w, "  export AWS_ACCESS_KEY_ID=… AWS_SECRET_ACCESS_KEY=… AWS_REGION=%s", s.Region)
		if s.Endpoint != "" {
			fmt.Fprintf(w, " AWS_ENDPOINT_URL=%s", s.Endpoint)
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "  holdfast recover %s --data-dir %s %s %s\n%s\n\n", location, rootDataDir, flag, filepath.Join("/root", file), rule)
}

func orAmazon(endpoint string) string {
	if endpoint == "" {
		return "Amazon S3"
	}
	return endpoint
}
