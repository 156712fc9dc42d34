package postgres

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"holdfast/engine/model"
)

// FuzzRules writes pg_hba.conf for any allow-list, database and user, and reads it
// as PostgreSQL does: it admits only the users, to the database, from the entries;
// and the last rule rejects.
func FuzzRules(f *testing.F) {
	f.Add("shop", "app", "127.0.0.0/8 ::1")
	f.Add("all", "all", "0.0.0.0/0 ::/0")
	f.Add("sameuser", "+group", "::ffff:10.0.0.0/104")
	f.Add("a b\"c", "@file", "10.0.0.1 fe80::1/64")
	f.Add("replication", "holdfast", "")
	f.Fuzz(func(t *testing.T, database, user, entries string) {
		allow, err := model.ParseAllowlist("entries", strings.Fields(entries))
		if err != nil {
			return
		}
		rules, err := HBA{Database: database, Users: []string{user}, Allow: allow}.rules()
		if err != nil {
			return
		}
		lines := strings.Split(strings.TrimSuffix(rules, "\n"), "\n")
		if lines[len(lines)-1] != "host all all all reject" {
			t.Fatalf("the last rule is %q", lines[len(lines)-1])
		}
		for _, line := range lines[:len(lines)-1] {
			tokens := parseHBALine(line)
			if len(tokens) == 0 || strings.HasPrefix(line, "#") || tokens[0].text == "local" || tokens[len(tokens)-1].text == "reject" {
				continue
			}
			if len(tokens) != 5 || tokens[1] != (hbaToken{database, true}) || tokens[2] != (hbaToken{user, true}) || tokens[4].text != "scram-sha-256" {
				t.Fatalf("a rule lets in others: %q is read as %v", line, tokens)
			}
			network, err := netip.ParsePrefix(tokens[3].text)
			if err != nil || !slices.ContainsFunc(allow, func(p netip.Prefix) bool { return covers(p, network) }) {
				t.Fatalf("%q lets in %s, which %v does not", line, tokens[3].text, allow)
			}
			if loopback := network.Addr().IsLoopback() && network.Bits() >= 8; tokens[0].text != "hostssl" && !loopback {
				t.Fatalf("%q does without TLS", line)
			}
		}
	})
}

// covers reports whether outer contains all of inner.
func covers(outer, inner netip.Prefix) bool {
	if outer.Addr().Is4In6() && outer.Bits() >= 96 {
		outer = netip.PrefixFrom(outer.Addr().Unmap(), outer.Bits()-96)
	}
	return outer.Bits() <= inner.Bits() && outer.Contains(inner.Addr())
}
