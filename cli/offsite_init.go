package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"filippo.io/age"
	"github.com/spf13/cobra"

	"holdfast/cli/remote"
	"holdfast/engine/model"
	"holdfast/engine/offsite"
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
	recipients, keys, err := i.wrapping()
	if err != nil {
		return err
	}
	at.Keys = keys
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
		sheet := recoverySheet{location: location, recipients: i.recipients}
		if recipients == nil {
			sheet.passphrases = keys.Passphrases()[:1]
		}
		if err := sheet.confirm(cmd, i.yes); err != nil {
			return err
		}
	} else if !i.yes {
		return errNoSheet()
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

// wrapping returns what encrypts the master key: recipients, or the first of the keys' passphrases.
func (i *initializer) wrapping() (recipients []age.Recipient, keys offsite.Keys, err error) {
	if (i.PassphraseFile == "") == (len(i.recipients) == 0) {
		return nil, keys, usageError{errors.New("say either --passphrase-file or --recipient: without one of them the copy cannot be encrypted")}
	}
	if i.PassphraseFile != "" {
		keys, err = i.keys()
		return nil, keys, err
	}
	recipients, err = sealed.ParseRecipients(strings.Join(i.recipients, "\n"))
	if err != nil {
		err = usageError{fmt.Errorf("recipient: %w", err)}
	}
	return recipients, keys, err
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
