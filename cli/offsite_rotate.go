package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"filippo.io/age"
	"github.com/spf13/cobra"

	"holdfast/engine/model"
	"holdfast/engine/offsite"
	"holdfast/internal/sealed"
)

func newOffsiteRotate() *cobra.Command {
	var next string
	var names []string
	var keys offsite.Keys
	var recipients []age.Recipient
	var yes bool
	c := &copyCommand{}
	c.read = func() (err error) {
		keys, recipients, err = wrappingNext(next, names)
		if err == nil && c.PassphraseFile == "" && keys.IsZero() && recipients == nil {
			return usageError{errors.New("--recipient or --new-passphrase-file says what the new master key is encrypted with")}
		}
		return err
	}
	cmd := c.command("rotate", "Add a master key, for another passphrase too", func(ctx context.Context, cmd *cobra.Command, at offsite.Location) error {
		if err := offsite.CheckKeys(ctx, at); err != nil {
			return err
		}
		sheet := recoverySheet{location: at.URL, passphrases: passphrasesAfter(keys, at.Keys), recipients: names, earlier: c.IdentityFile != ""}
		if c.json && !yes {
			return errNoSheet()
		}
		if !c.json {
			if err := sheet.confirm(cmd, yes); err != nil {
				return err
			}
		}
		made, err := offsite.Rotate(ctx, at, keys, recipients)
		if err != nil {
			return err
		}
		return printResult(cmd.OutOrStdout(), c.json, made, func(w io.Writer, r offsite.Rotated) {
			fmt.Fprintf(w, "master key %d is there; the appliance uses it from its next start on\n", r.MasterKey)
			if !keys.IsZero() {
				fmt.Fprintln(w, "write the new passphrase into the first line of the passphrase file, and keep the earlier one in the second: what was copied until now needs it")
			}
			if recipients != nil {
				fmt.Fprintln(w, "start the appliance with --offsite-identity, and keep what opened the copy until now: what was copied until now needs it")
			}
		})
	})
	cmd.Long = `Add a master key. The appliance encrypts with it from its next start on. What was copied until then stays as it is, and needs
the earlier master key, and so the passphrase or identity of that. With --new-passphrase-file the new key is encrypted with another
passphrase. Write it into the first line of the passphrase file, above the earlier one. With --recipient an age identity opens the new
key: give the appliance that identity beside what opened the copy until then.

A new recovery sheet is printed. Nothing is changed before you typed the word on it, or said --yes.`
	cmd.Flags().StringVar(&next, "new-passphrase-file", "", "file with another passphrase in its first line (default: the present one)")
	cmd.Flags().StringSliceVar(&names, "recipient", nil, "age recipient (age1…) of the new key; can be repeated")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask for the word on the sheet")
	return cmd
}

// passphrasesAfter returns the passphrases of a copy after a rotation, the present one first.
func passphrasesAfter(next, present offsite.Keys) []model.Secret {
	all := slices.Concat(next.Passphrases()[:min(1, len(next.Passphrases()))], present.Passphrases())
	seen := map[string]bool{}
	return slices.DeleteFunc(all, func(p model.Secret) bool {
		twice := seen[p.Reveal()]
		seen[p.Reveal()] = true
		return twice
	})
}

// wrappingNext returns what encrypts the new master key: nothing for what encrypts the
// present one.
func wrappingNext(file string, names []string) (keys offsite.Keys, recipients []age.Recipient, err error) {
	if file != "" && len(names) > 0 {
		return keys, nil, usageError{errors.New("say either --new-passphrase-file or --recipient")}
	}
	if file != "" {
		keys, err = readKeys("new-passphrase-file", file, offsite.ParsePassphrases)
		return keys, nil, err
	}
	if len(names) == 0 {
		return keys, nil, nil
	}
	if recipients, err = sealed.ParseRecipients(strings.Join(names, "\n")); err != nil {
		return keys, nil, usageError{fmt.Errorf("recipient: %w", err)}
	}
	return keys, recipients, nil
}
