package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"holdfast/cli/remote"
)

// durationVar declares a flag for a duration, which may be in days.
func durationVar(flags *pflag.FlagSet, to *time.Duration, name string, value time.Duration, usage string) {
	*to = value
	flags.Var((*duration)(to), name, usage)
	if value == 0 {
		flags.Lookup(name).DefValue = "0" // which help does not show
	}
}

// duration is a pflag.Value.
type duration time.Duration

// String implements pflag.Value.
func (d *duration) String() string { return time.Duration(*d).String() }

// Type implements pflag.Value.
func (*duration) Type() string { return "duration" }

// Set implements pflag.Value.
func (d *duration) Set(text string) error {
	value, err := remote.ParseDuration(text)
	if err != nil {
		return errors.New("not a duration such as 12h or 7d")
	}
	*d = duration(value)
	return nil
}

// setFlag sets a flag that came from elsewhere than the command line. Its error says what is wanted.
func setFlag(flags *pflag.FlagSet, f *pflag.Flag, value string) error {
	err := flags.Set(f.Name, value)
	if text := wanted(f); err != nil && text != "" {
		return fmt.Errorf("%q is not %s", value, text)
	}
	return err
}

// explainFlag returns an error of the command line that says what is wanted.
func explainFlag(err error) error {
	invalid, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok || wanted(invalid.GetFlag()) == "" {
		return err
	}
	return fmt.Errorf("--%s: %q is not %s", invalid.GetFlag().Name, invalid.GetValue(), wanted(invalid.GetFlag()))
}

// wanted says what a flag's value must be, "" if its own errors do.
func wanted(f *pflag.Flag) string {
	if _, days := f.Value.(*duration); days {
		return "a duration such as 12h or 7d"
	}
	switch f.Value.Type() {
	case "int", "int64", "uint64":
		return "a whole number"
	case "bool":
		return "true or false"
	case "duration":
		return "a duration such as 12h"
	default:
		return ""
	}
}
