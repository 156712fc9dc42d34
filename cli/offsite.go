package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"holdfast/cli/remote"
	"holdfast/engine/model"
	"holdfast/engine/offsite"
	"holdfast/internal/objectstore"
)

// newOffsite returns the commands that need only the store, and neither an appliance nor a
// data directory.
func newOffsite() *cobra.Command {
	cmd := group("offsite", "The copy of the appliance in a store elsewhere",
		newOffsiteInit(), newOffsiteVerify(), newOffsitePrune(), newOffsiteRotate(), newOffsiteTakeOver(), remote.OffsiteStatus(version()))
	cmd.Long = `The copy of the appliance in a store elsewhere: an S3 bucket (s3://bucket/prefix) or a directory on another disk
(file:///path). ` + "`holdfast serve --offsite URL`" + ` keeps it up to date, and ` + "`holdfast recover URL`" + ` makes an appliance of it.

Credentials, region and endpoint of a bucket come from the variables of the AWS tools, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,
AWS_REGION and AWS_ENDPOINT_URL, or from their config files.`
	return cmd
}

// copyFlags are the flags that name what opens a copy.
type copyFlags struct {
	PassphraseFile string
	IdentityFile   string
}

func (f *copyFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.PassphraseFile, "passphrase-file", "", "file with the passphrase of the copy; earlier passphrases in the lines after it")
	flags.StringVar(&f.IdentityFile, "identity", "", "file with age identities that open the copy, one a line; after a rotation from a passphrase, beside --passphrase-file")
}

// keys reads the files. It must run before root is given up.
func (f copyFlags) keys() (offsite.Keys, error) {
	var passphrases, identities offsite.Keys
	var err error
	if f.PassphraseFile != "" {
		passphrases, err = readKeys("passphrase-file", f.PassphraseFile, offsite.ParsePassphrases)
	}
	if err == nil && f.IdentityFile != "" {
		identities, err = readKeys("identity", f.IdentityFile, offsite.ParseIdentities)
	}
	keys := passphrases.And(identities)
	if err == nil && keys.IsZero() {
		err = usageError{errors.New("--passphrase-file names a file with the passphrase of the copy, or --identity one with an age identity")}
	}
	return keys, err
}

// readKeys reads a file of keys. Its errors do not show its content.
func readKeys(flag, path string, parse func(string) (offsite.Keys, error)) (offsite.Keys, error) {
	_, keys, err := readKeyFile(flag, path, parse)
	return keys, err
}

// readKeyFile is readKeys that also returns the text of the file.
func readKeyFile(flag, path string, parse func(string) (offsite.Keys, error)) (model.Secret, offsite.Keys, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return model.Secret{}, offsite.Keys{}, usageError{fmt.Errorf("%s: %w", flag, err)}
	}
	keys, err := parse(string(text))
	if err != nil {
		return model.Secret{}, offsite.Keys{}, usageError{fmt.Errorf("%s: %s: %w", flag, path, err)}
	}
	return model.NewSecret(string(text)), keys, nil
}

// copyCommand is what the commands on a copy share.
type copyCommand struct {
	config
	copyFlags
	json bool
	// read reads what other flags name, before root is given up; nil reads nothing.
	read func() error
}

// command returns a command on the copy at a URL.
func (c *copyCommand) command(use, short string, do func(ctx context.Context, cmd *cobra.Command, at offsite.Location) error) *cobra.Command {
	cmd := &cobra.Command{
		Use: use + " URL", Short: short,
		Args: exactURL,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.load(cmd.Flags()); err != nil {
				return err
			}
			keys, err := c.keys()
			if err != nil {
				return err
			}
			if c.read != nil {
				if err := c.read(); err != nil {
					return err
				}
			}
			if err := c.becomeOwner(args[0]); err != nil {
				return err
			}
			return do(cmd.Context(), cmd, offsite.Location{URL: args[0], Keys: keys})
		},
	}
	c.registerCommon(cmd.Flags())
	c.register(cmd.Flags())
	cmd.Flags().BoolVar(&c.json, "json", false, "print JSON")
	return cmd
}

// becomeOwner gives up root for a copy in a directory: what root writes there, serve
// could not read.
func (c *copyCommand) becomeOwner(location string) error {
	if !strings.HasPrefix(location, "file:") {
		return nil
	}
	return giveUpRoot(c.DataDir, c.User)
}

// exactURL accepts exactly one URL of a store.
func exactURL(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return errors.New("name the one store: " + objectstore.Locations)
	}
	if !objectstore.HasScheme(args[0]) {
		return fmt.Errorf("%q is not the URL of a store: %s", args[0], objectstore.Locations)
	}
	return nil
}

// amount formats a number of bytes.
func amount(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	value, units := float64(n)/unit, "KMGTPE"
	for value >= unit && len(units) > 1 {
		value, units = value/unit, units[1:]
	}
	return fmt.Sprintf("%.1f %ciB", value, units[0])
}
