package model

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseAllowlist(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		in   []string
		want []string
	}{
		{"none", nil, []string{}},
		{"one address", []string{"192.0.2.1"}, []string{"192.0.2.1"}},
		{"one address as a network", []string{"192.0.2.1/32"}, []string{"192.0.2.1"}},
		{"everybody", []string{"0.0.0.0/0", "::/0"}, []string{"0.0.0.0/0", "::/0"}},
		{"short and long IPv6", []string{"2001:0DB8:0:0:0:0:0:1"}, []string{"2001:db8::1"}},
		{"an IPv6 network", []string{"2001:db8::/32"}, []string{"2001:db8::/32"}},
		{"IPv6 with a dotted end", []string{"64:ff9b::192.0.2.33"}, []string{"64:ff9b::c000:221"}},
		{"a v4-mapped address is the IPv4 one", []string{"::ffff:192.0.2.1"}, []string{"192.0.2.1"}},
		{"in their order", []string{"10.0.0.2", "10.0.0.1"}, []string{"10.0.0.2", "10.0.0.1"}},
		{
			"without duplicates, however written",
			[]string{"10.0.0.1", "2001:db8::1", "10.0.0.1/32", "::ffff:10.0.0.1", "2001:DB8:0::1/128", "10.0.0.0/8", "10.0.0.0/8"},
			[]string{"10.0.0.1", "2001:db8::1", "10.0.0.0/8"},
		},
		{"a network beside its part", []string{"10.0.0.0/8", "10.1.0.0/16"}, []string{"10.0.0.0/8", "10.1.0.0/16"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			prefixes, err := ParseAllowlist("entries", tt.in)
			if err != nil {
				t.Fatal(err)
			}
			got := []string{}
			for _, p := range prefixes {
				got = append(got, FormatNetwork(p))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseAllowlistRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, entry, says string }{
		{"nothing", "", "neither"},
		{"a space", " 10.0.0.1", "neither"},
		{"a name", "example.com", "neither"},
		{"a number", "3232235777", "neither"},
		{"three parts", "10.0.0", "neither"},
		{"a part too large", "10.0.0.256", "neither"},
		{"leading zeros, octal to some", "010.0.0.1", "neither"},
		{"a port", "10.0.0.1:5432", "neither"},
		{"brackets", "[::1]", "neither"},
		{"a zone", "fe80::1%eth0", "neither"},
		{"a zone in a network", "fe80::%eth0/64", "neither"},
		{"a v4-mapped network", "::ffff:10.0.0.0/104", "neither"},
		{"a v4-mapped single network", "::ffff:10.0.0.1/128", "neither"},
		{"a mask of many bits", "10.0.0.0/33", "neither"},
		{"a negative mask", "10.0.0.0/-1", "neither"},
		{"a mask with zeros", "10.0.0.0/08", "neither"},
		{"a dotted mask", "10.0.0.0/255.0.0.0", "neither"},
		{"no mask", "10.0.0.0/", "neither"},
		{"host bits", "10.0.0.1/8", "10.0.0.0/8 is the network"},
		{"IPv6 host bits", "2001:db8::1/32", "2001:db8::/32 is the network"},
		{"host bits below everybody", "1.2.3.4/0", "0.0.0.0/0 is the network"},
		{"pg_hba.conf's syntax", "10.0.0.1/32 trust\nhost all all 0.0.0.0/0 trust", "neither"},
		{"a NUL", "10.0.0.1\x00", "neither"},
		{"a keyword of pg_hba.conf", "all", "neither"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := ParseAllowlist("entries", []string{"192.0.2.1", tt.entry})
			wantInvalid(t, err, "entries: ", tt.says)
			if err != nil && !strings.Contains(err.Error(), fmt.Sprintf("%q", tt.entry)) {
				t.Errorf("the error does not name the entry: %v", err)
			}
		})
	}
}

func TestParseAllowlistCounts(t *testing.T) {
	t.Parallel()
	entries := make([]string, 0, MaxAllowlist+1)
	for i := range MaxAllowlist + 1 {
		entries = append(entries, fmt.Sprintf("10.0.%d.%d", i/256, i%256))
	}
	prefixes, err := ParseAllowlist("entries", entries[:200])
	if err != nil || len(prefixes) != 200 {
		t.Errorf("200 entries give %d, %v", len(prefixes), err)
	}
	_, err = ParseAllowlist("entries", entries)
	wantInvalid(t, err, "entries: ", "at most 200 entries, not 201")
}

// FuzzParseAllowlist checks that accepted input becomes canonical: formatting and
// parsing it again does not change it.
func FuzzParseAllowlist(f *testing.F) {
	for _, seed := range []string{"10.0.0.1", "::ffff:10.0.0.1", "fe80::1%eth0", "10.0.0.0/8", "::/0", "10.0.0.1/8"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, entry string) {
		first, err := ParseAllowlist("entries", []string{entry})
		if err != nil {
			return
		}
		text := FormatNetwork(first[0])
		again, err := ParseAllowlist("entries", []string{text, entry})
		if err != nil || len(again) != 1 || again[0] != first[0] {
			t.Errorf("%q is %s, and that is %v, %v", entry, text, again, err)
		}
		if first[0] != first[0].Masked() || first[0].Addr().Is4In6() || strings.ContainsAny(text, " \t\n#%,\"") {
			t.Errorf("%q is accepted as %s", entry, text)
		}
	})
}
