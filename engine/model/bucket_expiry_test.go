package model

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestExpirySooner compares what Sooner says of two sets of rules with what they do with every short key.
func TestExpirySooner(t *testing.T) {
	t.Parallel()
	keys := []string{""}
	for i := 0; len(keys) < 31; i++ { // up to four letters
		keys = append(keys, keys[i]+"a", keys[i]+"b")
	}
	draw := func(t *rapid.T, name string) (rules Expiry) {
		for _, prefix := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"", "a", "ab", "aba", "b"}), 0, 4, rapid.ID).Draw(t, name) {
			rules = append(rules, ExpiryRule{prefix, rapid.IntRange(0, 2).Draw(t, "days"), rapid.IntRange(0, 2).Draw(t, "noncurrent")})
		}
		return rules
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := draw(t, "rules"), draw(t, "other rules")
		want := slices.ContainsFunc(keys, func(key string) bool {
			less := func(a, b time.Duration) bool { return a > 0 && (b == 0 || a < b) }
			return less(a.Life(key), b.Life(key)) || less(a.NoncurrentLife(key), b.NoncurrentLife(key))
		})
		if a.Sooner(b) != want {
			t.Errorf("%+v removes something sooner than %+v: %v", a, b, !want)
		}
	})
}

func TestExpiryOfTheWholeBucket(t *testing.T) {
	t.Parallel()
	rules := Expiry{{Days: 9, NoncurrentDays: 3}, {Prefix: "tmp/", Days: 1}}
	for days, want := range map[int]string{0: "[{ 0 3} {tmp/ 1 0}]", 2: "[{ 2 3} {tmp/ 1 0}]"} {
		if got := rules.WithDays(days); fmt.Sprint(got) != want || got.Days() != days {
			t.Errorf("with %d days: %v", days, got)
		}
	}
	if got := rules[1:].WithDays(0); fmt.Sprint(got) != "[{tmp/ 1 0}]" {
		t.Errorf("without a rule for the bucket: %v", got)
	}
}

func TestValidateExpiry(t *testing.T) {
	t.Parallel()
	var long Expiry
	for i := range MaxExpiryRules {
		long = append(long, ExpiryRule{Prefix: fmt.Sprintf("%03d%s", i, strings.Repeat("x", 1000)), Days: 1})
	}
	for want, rules := range map[string]Expiry{
		"":                   {{Prefix: "b/", Days: 1}, {Prefix: "a/", NoncurrentDays: 36500}, {Days: 9}},
		"at most 100 rules":  make(Expiry, 101),
		"65536 bytes in all": long,
		"rules.days: must":   {{Prefix: "a", Days: -1}},
		"noncurrent_days:":   {{Prefix: "a", NoncurrentDays: 36501}},
		`for the prefix "a"`: {{Prefix: "a"}},
		"two rules":          {{Prefix: "a", Days: 1}, {Prefix: "b", Days: 1}, {Prefix: "a", Days: 2}},
		"rules.prefix: must": {{Prefix: "a\x00", Days: 1}},
	} {
		got, err := ValidateExpiry("rules", rules)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", rules, err)
		}
		if want == "" && fmt.Sprint(got) != "[{ 9 0} {a/ 0 36500} {b/ 1 0}]" {
			t.Errorf("sorted: %v", got)
		}
	}
}
