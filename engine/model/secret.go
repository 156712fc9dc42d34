package model

import (
	"fmt"
	"log/slog"
)

// redacted is what every way of printing a Secret shows.
const redacted = "[redacted]"

// Secret is a text that must not be seen: a password, a key, a code. Every
// way Go has of printing or encoding it shows "[redacted]"; only Reveal gives
// the text, so a search for Reveal finds every place a secret leaves.
//
// The text lies behind a pointer because fmt prints what it may not call
// methods on (a Secret in an unexported field, and any under a wrong verb) by
// reflection, which stops at pointers. For the same reason == would compare
// addresses, so it does not compile.
type Secret struct {
	_    [0]func()
	text *string
}

// NewSecret wraps text.
func NewSecret(text string) Secret { return Secret{text: &text} }

// Reveal returns the text itself.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// IsZero reports whether there is no secret at all.
func (s Secret) IsZero() bool { return s.Reveal() == "" }

// String implements fmt.Stringer.
func (Secret) String() string { return redacted }

// Format implements fmt.Formatter, so that no verb reaches the text.
func (Secret) Format(f fmt.State, _ rune) { fmt.Fprint(f, redacted) }

// LogValue implements slog.LogValuer.
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText implements encoding.TextMarshaler, for JSON and its kin.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }
