package remote

import (
	"time"

	"github.com/spf13/pflag"

	"holdfast/server/api/wire"
)

// lockFlags are the flags that lock a version of an object.
type lockFlags struct {
	until        string
	mode         wire.LockMode
	hold, bypass bool
}

func (l *lockFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&l.until, "retain-until", "", "until when the version cannot be removed, such as 2036-12-31T00:00:00Z; an empty text removes the retention")
	flags.StringVar((*string)(&l.mode), "lock-mode", string(wire.LockGovernance), "mode of the retention: governance, which keys that may delete can shorten with --bypass-governance, or compliance, which cannot be shortened")
	flags.BoolVar(&l.hold, "legal-hold", false, "keep the version from being removed; --legal-hold=false takes the hold away")
	flags.BoolVar(&l.bypass, "bypass-governance", false, "weaken a retention in the mode governance, for which the key must be one that may delete objects")
}

// set sets what the given flags change.
func (l *lockFlags) set(given func(flag string) bool, in *wire.UpdateObject) error {
	if given("legal-hold") {
		in.LegalHold = &l.hold
	}
	if !given("retain-until") {
		if given("lock-mode") || given("bypass-governance") {
			return usagef("--lock-mode and --bypass-governance need --retain-until")
		}
		return nil
	}
	if in.Retention = wire.Default[wire.Retention](); l.until != "" {
		until, err := time.Parse(time.RFC3339Nano, l.until)
		if err != nil {
			return usagef("--retain-until: %q is no time such as 2036-12-31T00:00:00Z", l.until)
		}
		in.Retention = wire.SetTo(wire.Retention{Mode: l.mode, Until: until})
	}
	if l.bypass {
		in.BypassGovernance = &l.bypass
	}
	return nil
}
