package remote

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"

	"github.com/spf13/cobra"

	"holdfast/cli/client"
	"holdfast/server/api/wire"
)

func newAllowlist(s *session) *cobra.Command {
	show := s.aboutDatabase("show DATABASE", "Show who may connect to a database", cobra.ExactArgs(1),
		func(t *task, db wire.Database, _ []string) error {
			return shows(t, t.allowlistDetails)(t.api.GetDatabaseAllowlist(t.ctx, db.ID))
		})
	set := s.aboutDatabase("set DATABASE [ADDRESS…]", "Replace the whole list; without an address nobody may connect", cobra.MinimumNArgs(1),
		func(t *task, db wire.Database, entries []string) error {
			if len(entries) == 0 {
				if err := t.confirm("let nobody connect to %s, and end every session", db.Name); err != nil {
					return err
				}
			}
			return t.replaceAllowlist(db, entries)
		})
	set.Example = "  holdfast db allowlist set shop 127.0.0.1 10.0.0.0/8 2001:db8::/32"
	add := s.aboutDatabase("add DATABASE ADDRESS…", "Let more addresses and networks connect", cobra.MinimumNArgs(2),
		func(t *task, db wire.Database, entries []string) error {
			return t.changeAllowlist(db, func(list []string, _ bool) ([]string, error) { return append(list, entries...), nil })
		})
	remove := s.aboutDatabase("remove DATABASE ADDRESS…", "Let addresses and networks connect no longer", cobra.MinimumNArgs(2),
		func(t *task, db wire.Database, entries []string) error {
			return t.changeAllowlist(db, func(list []string, again bool) ([]string, error) { return withoutEntries(list, entries, again) })
		})
	return Group("allowlist", "Who may connect to a database", show, set, add, remove)
}

// changeAttempts is how often a change of a list is tried that others change at the same time.
const changeAttempts = 10

// changeAllowlist replaces the list by what change makes of it. If somebody else has changed it meanwhile, it begins again:
// their change stays.
func (t *task) changeAllowlist(db wire.Database, change func(list []string, again bool) ([]string, error)) error {
	for attempt := 1; ; attempt++ {
		var tag string
		list, err := t.api.GetDatabaseAllowlist(client.WithETag(t.ctx, &tag), db.ID)
		if err != nil {
			return err
		}
		entries, err := change(list.Entries, attempt > 1)
		if err != nil {
			return err
		}
		made, err := t.api.ReplaceDatabaseAllowlist(client.WithIfMatch(t.ctx, tag), db.ID, wire.ReplaceAllowlist{Entries: entries})
		if refused, is := errors.AsType[*client.Error](err); is && refused.Status == http.StatusPreconditionFailed && attempt < changeAttempts {
			continue
		}
		return t.showAllowlist(made, err)
	}
}

func (t *task) replaceAllowlist(db wire.Database, entries []string) error {
	return t.showAllowlist(t.api.ReplaceDatabaseAllowlist(t.ctx, db.ID, wire.ReplaceAllowlist{Entries: entries}))
}

func (t *task) showAllowlist(list wire.Allowlist, err error) error {
	if err != nil {
		return err
	}
	if list.SessionsTerminated > 0 {
		t.note("%d sessions that are no longer allowed were ended", list.SessionsTerminated)
	}
	return t.show(list, func(w io.Writer) { t.allowlistDetails(w, list) })
}

func (t *task) allowlistDetails(w io.Writer, list wire.Allowlist) {
	for _, entry := range list.Entries {
		fmt.Fprintln(w, printable(entry))
	}
	if len(list.Entries) == 0 {
		t.note("nobody may connect; `holdfast db allowlist add` lets somebody in")
	}
}

// withoutEntries removes entries from a list, in any notation. An entry that is
// not on the list is an error, because a typo would leave access open; but not again, after a first attempt found it.
func withoutEntries(list, entries []string, again bool) ([]string, error) {
	kept := slices.Clone(list)
	for _, entry := range entries {
		before := len(kept)
		kept = slices.DeleteFunc(kept, func(e string) bool { return sameNetwork(e, entry) })
		if len(kept) == before && !again {
			return nil, failf(exitNotFound, "%s is not on the list; `holdfast db allowlist show` shows it", entry)
		}
	}
	return kept, nil
}

func sameNetwork(a, b string) bool {
	first, ok := network(a)
	second, okToo := network(b)
	return a == b || ok && okToo && first == second
}

func network(text string) (netip.Prefix, bool) {
	if prefix, err := netip.ParsePrefix(text); err == nil {
		return prefix.Masked(), true
	}
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Prefix{}, false
	}
	return netip.PrefixFrom(addr.Unmap(), addr.Unmap().BitLen()), true
}
