package model

import (
	"fmt"
	"slices"
	"testing"
)

func TestPublicPrefixes(t *testing.T) {
	t.Parallel()
	got, err := ValidatePublicPrefixes("f", []string{"b/", "a/b/", "a/", "a/", "ab"})
	if err != nil || !slices.Equal(got, []string{"a/", "ab", "b/"}) {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := ValidatePublicPrefixes("f", nil); err != nil || len(got) != 0 {
		t.Errorf("%q, %v", got, err)
	}
	many := []string{}
	for i := range MaxPublicPrefixes + 1 {
		many = append(many, fmt.Sprintf("%02d/", i))
	}
	if _, err := ValidatePublicPrefixes("f", many[1:]); err != nil {
		t.Error(err)
	}
	if _, err := ValidatePublicPrefixes("f", many); CodeOf(err) != CodeValidation {
		t.Errorf("too many: %v", err)
	}
}

func TestPublicRights(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		may   PublicRights
		key   string
		reads bool
	}{
		{PublicRights{}, "a", false},
		{PublicRights{List: true}, "a", false},
		{PublicRights{Read: true}, "a", true},
		{PublicRights{Prefixes: []string{"a/"}}, "a/b", true},
		{PublicRights{Prefixes: []string{"a/"}}, "a", false},
		{PublicRights{Prefixes: []string{"a/"}}, "b/a/", false},
		{PublicRights{Prefixes: []string{"x", "a/"}}, "a/", true},
	} {
		if c.may.Reads(c.key) != c.reads {
			t.Errorf("%+v and %q: %t", c.may, c.key, !c.reads)
		}
	}
	b := Bucket{Public: true, PublicPrefixes: []string{"a/"}, Policy: "x"}
	if err := b.SetPublic(b.PublicRights()); err != nil || b.Policy != "x" {
		t.Errorf("no change drops the policy: %+v, %v", b, err)
	}
	if err := b.SetPublic(PublicRights{Prefixes: []string{"b/"}}); err != nil || b.Policy != "" || b.Public || !slices.Equal(b.PublicPrefixes, []string{"b/"}) {
		t.Errorf("%+v, %v", b, err)
	}
	if b.Block(&PublicAccessBlock{BlockPublicPolicy: true}); b.PublicRights().Any() {
		t.Errorf("blocked: %+v", b)
	}
}
