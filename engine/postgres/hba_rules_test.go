package postgres

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

func TestNetworkRules(t *testing.T) {
	t.Parallel()
	for prefix, want := range map[string]string{
		"127.0.0.1/32":         "host 127.0.0.1/32",
		"127.0.0.0/8":          "host 127.0.0.0/8",
		"::1/128":              "host ::1/128",
		"10.1.2.3/32":          "hostssl 10.1.2.3/32",
		"10.1.2.3/8":           "hostssl 10.0.0.0/8",
		"0.0.0.0/0":            "host 127.0.0.0/8, hostssl 0.0.0.0/0",
		"126.0.0.0/7":          "host 127.0.0.0/8, hostssl 126.0.0.0/7",
		"::/0":                 "host ::1/128, hostssl ::/0",
		"::/64":                "host ::1/128, hostssl ::/64",
		"2001:db8::/32":        "hostssl 2001:db8::/32",
		"::ffff:127.0.0.1/128": "host 127.0.0.1/32",
	} {
		rules, err := networkRules(netip.MustParsePrefix(prefix))
		var got []string
		for _, r := range rules {
			got = append(got, fmt.Sprint(r.kind, " ", r.network))
		}
		if err != nil || strings.Join(got, ", ") != want {
			t.Errorf("%s: %q, %v, want %q", prefix, got, err, want)
		}
	}
	if _, err := networkRules(netip.Prefix{}); err == nil {
		t.Error("the zero prefix has rules")
	}
}

// The first rule that matches decides: the superuser's refusal comes before every
// rule that admits clients.
func TestRuleOrder(t *testing.T) {
	t.Parallel()
	text, err := HBA{Database: "d", Users: []string{Superuser, "u"}, Allow: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}}.rules()
	if err != nil {
		t.Fatal(err)
	}
	refusal, admission := strings.Index(text, "host all holdfast,holdfast_dump all reject"), strings.Index(text, "scram")
	if refusal < 0 || admission < refusal || !strings.HasSuffix(text, "host all all all reject\n") {
		t.Errorf("rules:\n%s", text)
	}
}

// Those who create databases are admitted to all, after the refusal of the templates; the others to the tenant's.
func TestCreatorRules(t *testing.T) {
	t.Parallel()
	text, err := HBA{
		Database: "d", Users: []string{"u", "all", "c"}, Creators: []string{"c"}, Allow: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
	}.rules()
	want := "host template0,template1 all all reject\n" +
		"hostssl \"d\" \"u\",\"all\",\"c\" 10.0.0.0/8 scram-sha-256\n" +
		"hostssl all \"c\" 10.0.0.0/8 scram-sha-256\n" +
		"host all all all reject\n"
	if err != nil || !strings.HasSuffix(text, want) {
		t.Errorf("rules, %v:\n%s", err, text)
	}
}
