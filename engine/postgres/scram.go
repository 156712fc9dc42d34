package postgres

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"unicode"

	"holdfast/engine/model"

	"golang.org/x/text/unicode/norm"
)

// scramIterations and scramSaltLength are PostgreSQL's own
// (scram_iterations, SCRAM_DEFAULT_SALT_LEN).
const (
	scramIterations = 4096
	scramSaltLength = 16
)

// scramVerifier returns what PostgreSQL stores for the password, in the form of
// RFC 5803 that pg_authid uses. A role is given this and never the password, so
// that no SQL text, log or statistics view ever contains the password.
func scramVerifier(password model.Secret) (string, error) {
	salt := make([]byte, scramSaltLength)
	_, _ = rand.Read(salt) // does not fail
	return scramVerifierWith(password, salt, scramIterations)
}

func scramVerifierWith(password model.Secret, salt []byte, iterations int) (string, error) {
	salted, err := pbkdf2.Key(sha256.New, prepared(password.Reveal()), salt, iterations, sha256.Size)
	if err != nil {
		return "", fmt.Errorf("derive SCRAM keys: %w", err)
	}
	stored := sha256.Sum256(mac(salted, "Client Key"))
	b64 := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$%d:%s$%s:%s", iterations, b64(salt), b64(stored[:]), b64(mac(salted, "Server Key"))), nil
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// CheckPassword returns an error about field for the client unless every
// PostgreSQL client sends the password as the same bytes. Clients normalize it
// before they hash it: libpq by SASLprep (RFC 4013, NFKC), pgx by PRECIS (RFC
// 8265, NFC), some not at all. A password that these change differently would
// work with some clients only. ASCII is always fine, and so is most of what
// keyboards type.
func CheckPassword(field string, password model.Secret) error {
	text := password.Reveal()
	if prepared(text) != text {
		return model.Invalid(field, "has a character that database clients encode differently "+
			"(a ligature, a full-width or decomposed letter, a special space); use another")
	}
	for _, r := range text {
		if !unicode.IsPrint(r) {
			return model.Invalid(field, "has a character that cannot be printed; use another")
		}
	}
	return nil
}

// prepared applies the mapping of SASLprep (RFC 4013, sections 2.1 and 2.2): it
// maps other spaces to spaces, drops characters commonly mapped to nothing, and
// normalizes the rest (NFKC). libpq sends text unchanged if it is prohibited or
// was not assigned in Unicode 3.2. That makes no difference for passwords that
// pass CheckPassword.
func prepared(text string) string {
	return norm.NFKC.String(strings.Map(func(r rune) rune {
		switch {
		case isMappedToNothing(r):
			return -1
		case r > unicode.MaxASCII && (unicode.Is(unicode.Zs, r) || r == '\u200b'):
			return ' '
		}
		return r
	}, text))
}

// isMappedToNothing is table B.1 of RFC 3454 without U+200B, which RFC 4013 maps to
// a space.
func isMappedToNothing(r rune) bool {
	switch r {
	case 0x00ad, 0x034f, 0x1806, 0x200c, 0x200d, 0x2060, 0xfeff:
		return true
	}
	return r >= 0x180b && r <= 0x180d || r >= 0xfe00 && r <= 0xfe0f
}
