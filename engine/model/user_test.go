package model

import (
	"strings"
	"testing"
)

func TestNormalizeEmail(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, want string }{
		{"ada@example.com", "ada@example.com"},
		{"  Ada.Lovelace+x@Example.COM\n", "ada.lovelace+x@example.com"},
		{"a@localhost", "a@localhost"},
		{"o'brien@example.com", "o'brien@example.com"},
		{strings.Repeat("a", 242) + "@example.com", strings.Repeat("a", 242) + "@example.com"},
	} {
		got, err := NormalizeEmail("email", tt.in)
		if err != nil || got != tt.want {
			t.Errorf("%q gives %q, %v", tt.in, got, err)
		}
	}
	for _, in := range []string{
		"", "@", "a", "a@", "@example.com", "a b@example.com", "a@b@c", "a@exa mple.com", "a..b@example.com", ".a@example.com",
		"Ada <ada@example.com>", "<ada@example.com>", "ada@example.com, b@example.com", "ada@example.com (comment)",
		`"a b"@example.com`, "\"a\x00b\"@example.com", "a\x00@example.com", "a@example.com\x00", "a@exam\x00ple.com",
		"a\r\nBcc: b@example.com", "a@example.com\r\nBcc: b@example.com", "a\xff@example.com", "a@b\x7f",
		"a\u202e@example.com", "a\u200b@example.com", "a@\u00adexample.com",
		strings.Repeat("a", 243) + "@example.com",
	} {
		got, err := NormalizeEmail("email", in)
		if err == nil {
			t.Errorf("%q is accepted as %q", in, got)
			continue
		}
		wantInvalid(t, err, "email: ", "such as ada@example.com")
	}
}

// FuzzNormalizeEmail checks that normalizing twice changes nothing more, and that
// the result contains nothing that would break a log, a page or an index key.
func FuzzNormalizeEmail(f *testing.F) {
	for _, seed := range []string{"Ada@Example.com", `"a b"@x`, "a@[127.0.0.1]", "\u0130@x", "a@x\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		email, err := NormalizeEmail("email", in)
		if err != nil {
			return
		}
		again, err := NormalizeEmail("email", email)
		if err != nil || again != email {
			t.Errorf("%q gives %q, and that %q, %v", in, email, again, err)
		}
		if strings.ContainsAny(email, "\x00\r\n\t <>,\"") || strings.Count(email, "@") != 1 || len(email) > 254 {
			t.Errorf("%q gives %q", in, email)
		}
	})
}
