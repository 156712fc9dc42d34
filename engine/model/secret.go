package model

import (
	"fmt"
	"log/slog"
)

// redacted replaces the text of a Secret in all output.
const redacted = "[redacted]"

// Secret is a text that must not be shown: a password, a key, a code. Every way
// to print or encode it in Go yields "[redacted]". Only Reveal returns the text,
// so a search for Reveal finds every use of a secret.
//
// The text is stored as a pointer because fmt prints values whose methods it
// cannot call (a Secret in an unexported field, or any Secret with a wrong verb)
// by reflection, which stops at pointers. == would therefore compare addresses,
// so it does not compile.
type Secret struct {
	_    [0]func()
	text *string
}

// NewSecret wraps text.
func NewSecret(text string) Secret { return Secret{text: &text} }

// Reveal returns the secret text.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// IsZero reports whether the secret is empty.
func (s Secret) IsZero() bool { return s.Reveal() == "" }

// String implements fmt.Stringer.
func (Secret) String() string { return redacted }

// Format implements fmt.Formatter, so that no verb reaches the text.
func (Secret) Format(f fmt.State, _ rune) { fmt.Fprint(f, redacted) }

// LogValue implements slog.LogValuer.
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText implements encoding.TextMarshaler, for JSON and other formats.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }
