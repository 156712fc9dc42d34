package sealed

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"filippo.io/age"
)

const (
	wrappedTitle = "holdfast master key v1"
	// scryptPower is the work factor of passphrases as a power of two: 128 MiB of
	// memory while a key is wrapped or unwrapped, and about half a second.
	scryptPower = 17
	// maxScryptPower bounds what a wrapped key may ask for: 256 MiB.
	maxScryptPower = 18
	// maxWrapped bounds the size of a wrapped key that is read.
	maxWrapped = 1 << 20
)

// KeyName returns the name below which the wrapped key of a number is stored.
func KeyName(number uint32) string { return fmt.Sprintf("keys/%d.age", number) }

// ParseKeyName returns the number that KeyName made a name of, false if it is not one. The first number is 1.
func ParseKeyName(name string) (uint32, bool) {
	digits, ok := strings.CutPrefix(name, "keys/")
	digits, isKey := strings.CutSuffix(digits, ".age")
	n, err := strconv.ParseUint(digits, 10, 32)
	return uint32(n), ok && isKey && err == nil && n > 0 && KeyName(uint32(n)) == name
}

// ParseRecipients returns the recipients in text, one a line ("age1…"), with empty
// lines and comments that begin with "#".
func ParseRecipients(text string) ([]age.Recipient, error) {
	recipients, err := age.ParseRecipients(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("parse age recipients: %w", err)
	}
	return recipients, nil
}

// ParseIdentities returns the identities in text, one a line ("AGE-SECRET-KEY-1…"),
// with empty lines and comments that begin with "#".
func ParseIdentities(text string) ([]age.Identity, error) {
	identities, err := age.ParseIdentities(strings.NewReader(text))
	if err != nil { // age's own error may show a line, which may be a secret
		return nil, errors.New("parse age identities: each line is an identity (AGE-SECRET-KEY-1…), a comment (#…) or empty")
	}
	return identities, nil
}

// PassphraseRecipient returns the recipient that wraps a key with a passphrase. It
// is used alone.
func PassphraseRecipient(passphrase string) (age.Recipient, error) {
	r, err := age.NewScryptRecipient(passphrase)
	if err != nil {
		return nil, errors.New("the passphrase is empty")
	}
	r.SetWorkFactor(scryptPower)
	return r, nil
}

// PassphraseIdentity returns the identity that unwraps what PassphraseRecipient
// wrapped.
func PassphraseIdentity(passphrase string) (age.Identity, error) {
	i, err := age.NewScryptIdentity(passphrase)
	if err != nil {
		return nil, errors.New("the passphrase is empty")
	}
	i.SetMaxWorkFactor(maxScryptPower)
	return i, nil
}

// Wrap encrypts a key to the recipients, each of whom can unwrap it alone. The result
// is a file of the age command.
func Wrap(key Key, recipients ...age.Recipient) ([]byte, error) {
	var out bytes.Buffer
	w, err := age.Encrypt(&out, recipients...)
	if err == nil {
		_, err = fmt.Fprintf(w, "%s\nnumber %d\nsecret %s\n", wrappedTitle, key.number, base64.StdEncoding.EncodeToString(key.secret[:]))
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("wrap master key %d: %w", key.number, err)
	}
	return out.Bytes(), nil
}

// Unwrap decrypts the key of a number. The error wraps ErrLocked when no identity
// fits, ErrCorrupt for a file that is damaged or is not the key of that number, and
// ErrVersion.
func Unwrap(wrapped []byte, number uint32, identities ...age.Identity) (Key, error) {
	key, err := unwrap(wrapped, identities)
	if err == nil && key.number != number {
		err = fmt.Errorf("%w: it holds key %d", ErrCorrupt, key.number)
	}
	if err != nil {
		return Key{}, fmt.Errorf("unwrap master key %d: %w", number, err)
	}
	return key, nil
}

func unwrap(wrapped []byte, identities []age.Identity) (Key, error) {
	if len(wrapped) > maxWrapped {
		return Key{}, fmt.Errorf("%w: %d bytes are too many", ErrCorrupt, len(wrapped))
	}
	r, err := age.Decrypt(bytes.NewReader(wrapped), identities...)
	if mismatch := (*age.NoIdentityMatchError)(nil); errors.As(err, &mismatch) {
		return Key{}, ErrLocked
	}
	if err != nil {
		return Key{}, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		return Key{}, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return parseKey(string(text))
}

// parseKey reads what Wrap wrote. Its errors do not show it.
func parseKey(text string) (Key, error) {
	title, rest, _ := strings.Cut(text, "\n")
	if title != wrappedTitle {
		return Key{}, fmt.Errorf("%w: it is not a %q", ErrVersion, wrappedTitle)
	}
	number, secret, _ := strings.Cut(rest, "\n")
	n, numberErr := strconv.ParseUint(strings.TrimPrefix(number, "number "), 10, 32)
	b, secretErr := base64.StdEncoding.Strict().DecodeString(strings.TrimSuffix(strings.TrimPrefix(secret, "secret "), "\n"))
	if numberErr != nil || secretErr != nil || len(b) != masterSize {
		return Key{}, fmt.Errorf("%w: the key inside is malformed", ErrCorrupt)
	}
	return Key{uint32(n), [masterSize]byte(b)}, nil
}
