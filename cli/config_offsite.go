package cli

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"holdfast/engine/model"
	"holdfast/engine/offsite"
	"holdfast/internal/objectstore"
)

// registerOffsite declares the settings of the copy in a store elsewhere.
func (c *config) registerOffsite(flags *pflag.FlagSet) {
	flags.StringVar(&c.Offsite.URL, "offsite", "", "store that gets a continuous copy of everything: "+objectstore.Locations+"; prepare it with \"holdfast offsite init\" (default: none)")
	flags.StringVar(&c.OffsitePassphraseFile, "offsite-passphrase-file", "", "file with the passphrase of --offsite; earlier passphrases in the lines after it")
	flags.StringVar(&c.OffsiteIdentityFile, "offsite-identity", "", "file with age identities that open --offsite, one a line, in place of a passphrase or beside it")
	durationVar(flags, &c.Offsite.Interval, "offsite-interval", time.Second, "how far the copy may be behind while something changes")
	flags.Int64Var(&c.Offsite.Bandwidth, "offsite-bandwidth", 0, "bytes a second that the copy may send; 0 is no bound")
	flags.BoolVar(&c.NoOffsiteVerification, "no-offsite-verification", false, "do not read a sample of the copy back every day, and do not restore a database from it on trial every week, which stores may charge for")
	durationVar(flags, &c.Offsite.Retention, "offsite-retention", 30*24*time.Hour, "how long the copy is locked against deletion, where the bucket has Object Lock, at least 24h; 0 locks nothing")
	flags.StringVar(&c.ObjectsLocalSize, "objects-local-size", "0", "how much of this disk large objects may take, in bytes or as a share such as 30%; those not read for longest are then in the store of --offsite only. 0 keeps all here")
	flags.Int64Var(&c.LocalObjects.Above, "objects-offsite-above", 1<<20, "size of the smallest object that may leave this disk, in bytes")
	durationVar(flags, &c.LocalObjects.Unused, "objects-offsite-after", 0, "after how long without being read an object leaves this disk although there is room; 0 is never")
}

func (c *config) validateOffsite() error {
	if err := c.validateLocalObjects(); err != nil {
		return err
	}
	o := c.Offsite
	switch {
	case o.Retention < 0:
		return errors.New("offsite-retention: must not be negative")
	case o.Retention > 0 && o.Retention < minOffsiteRetention:
		return fmt.Errorf("offsite-retention: must be at least %s, because locks are extended twice a day, or 0, which locks nothing", minOffsiteRetention)
	}
	if o.URL == "" {
		if c.OffsitePassphraseFile != "" || c.OffsiteIdentityFile != "" {
			return errors.New("offsite: --offsite-passphrase-file and --offsite-identity open the store that --offsite names; name it")
		}
		return nil
	}
	if !objectstore.HasScheme(o.URL) {
		return fmt.Errorf("offsite: %q is not %s", o.URL, objectstore.Locations)
	}
	if c.OffsitePassphraseFile == "" && c.OffsiteIdentityFile == "" {
		return errors.New("offsite: name --offsite-passphrase-file or --offsite-identity, which open the copy")
	}
	switch {
	case o.Interval < 100*time.Millisecond || o.Interval > time.Hour:
		return errors.New("offsite-interval: must be from 100ms to 1h")
	case o.Bandwidth < 0 || o.Bandwidth > 0 && o.Bandwidth < minBandwidth:
		return fmt.Errorf("offsite-bandwidth: must be at least %d bytes a second, or 0 for no bound", minBandwidth)
	}
	return nil
}

func (c *config) validateLocalObjects() error {
	l := &c.LocalObjects
	bytes, err := strconv.ParseInt(c.ObjectsLocalSize, 10, 64)
	if err != nil {
		l.Share, err = parseShare(c.ObjectsLocalSize)
	} else {
		l.Bytes = bytes
	}
	switch {
	case err != nil || bytes < 0:
		return fmt.Errorf("objects-local-size: %q is neither a number of bytes nor a share of the disk such as 30%%", c.ObjectsLocalSize)
	case l.Above < 0 || l.Unused < 0:
		return errors.New("objects-offsite-above and objects-offsite-after: must not be negative")
	case l.Bytes == 0 && l.Share == 0 && l.Unused > 0:
		return errors.New("objects-offsite-after: objects leave this disk only with --objects-local-size, which says how much they may take")
	case (l.Bytes > 0 || l.Share > 0) && c.Offsite.URL == "":
		return errors.New("objects-local-size: objects leave this disk only for the store that --offsite names; name it")
	}
	return nil
}

// minOffsiteRetention is the shortest lock that does not end between two extensions.
const minOffsiteRetention = 24 * time.Hour

// minBandwidth is the least with which a transfer does not seem to stand still.
const minBandwidth = 16 << 10

// readOffsiteKeys reads what opens the copy. It must run before root is given up.
func (c *config) readOffsiteKeys() error {
	for _, f := range []struct {
		flag, path string
		to         *model.Secret
		parse      func(string) (offsite.Keys, error)
	}{
		{"offsite-passphrase-file", c.OffsitePassphraseFile, &c.Offsite.Passphrases, offsite.ParsePassphrases},
		{"offsite-identity", c.OffsiteIdentityFile, &c.Offsite.Identities, offsite.ParseIdentities},
	} {
		if f.path == "" {
			continue
		}
		text, _, err := readKeyFile(f.flag, f.path, f.parse)
		if err != nil {
			return err
		}
		*f.to = text
	}
	return nil
}
