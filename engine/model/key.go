package model

import (
	"cmp"
	"crypto/sha256"
	"hash/crc32"
	"slices"
	"strings"
	"time"
)

// The ways to create a key.
const (
	KeySourceAPI        = "api"
	KeySourceConsole    = "console"
	KeySourceDevice     = "device"
	KeySourceOperator   = "operator"
	KeySourceFirstStart = "first_start"
)

// A key's text is KeyPrefix, 43 base62 characters that carry 256 random bits, and
// 6 that carry the CRC-32 of everything before them. The checksum detects a
// mistyped key without a lookup and lets secret scanners confirm a match.
const (
	KeyPrefix   = "sk_live_hf_"
	keyRandom   = 43
	keyChecksum = 6
	keyLength   = len(KeyPrefix) + keyRandom + keyChecksum
)

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// S3Region is the region of every bucket in the S3 protocol.
const S3Region = "us-east-1"

// Key is an API key's record. It stores only the Hash of the secret.
type Key struct {
	ID             string     `json:"id"`
	Organization   string     `json:"organization"`
	Name           string     `json:"name"`
	Preview        string     `json:"preview"`
	Hash           []byte     `json:"hash"` // SHA-256 of the key's text
	Scopes         []Scope    `json:"scopes"`
	Preset         Preset     `json:"preset"`
	AllowDangerous bool       `json:"allow_dangerous"`
	Source         string     `json:"source"`
	CreatedAt      time.Time  `json:"created_at"`
	CreatedBy      Actor      `json:"created_by"`
	ExpiresAt      *time.Time `json:"expires_at"`
	LastUsedAt     *time.Time `json:"last_used_at"`
	LastUsedIP     *string    `json:"last_used_ip"`
	RevokedAt      *time.Time `json:"revoked_at"`
	ExpiryAudited  bool       `json:"expiry_audited"`
	// Budgets is the key whose budgets this one draws on, because that key, or one that
	// it made, made this one; "" is its own.
	Budgets string `json:"budgets,omitempty"`
}

// MaxKeys is how many keys that are neither revoked nor expired an organization can
// have. Keys that are stay only as long as there are not that many in all.
const MaxKeys = 1000

// BudgetOwner returns the id of the key whose budgets this one draws on.
func (k *Key) BudgetOwner() string { return cmp.Or(k.Budgets, k.ID) }

// Holds reports whether the key was granted scope.
func (k *Key) Holds(scope Scope) bool { return slices.Contains(k.Scopes, scope) }

// Tag identifies the state of the key that clients change.
func (k Key) Tag() string {
	k.LastUsedAt, k.LastUsedIP, k.ExpiryAudited = nil, nil, false
	return Tag(k)
}

// Usable reports whether the key is neither revoked nor expired at now.
func (k *Key) Usable(now time.Time) bool {
	return k.RevokedAt == nil && (k.ExpiresAt == nil || now.Before(*k.ExpiresAt))
}

// EndedAt returns since when a key that is not usable has been so.
func (k *Key) EndedAt() time.Time {
	switch {
	case k.RevokedAt == nil:
		return *k.ExpiresAt
	case k.ExpiresAt == nil || k.RevokedAt.Before(*k.ExpiresAt):
		return *k.RevokedAt
	}
	return *k.ExpiresAt
}

// FormatKey makes a key's text from 32 random bytes.
func FormatKey(random [32]byte) Secret {
	text := KeyPrefix + encodeBase62(random[:], keyRandom)
	return NewSecret(text + keyCheck(text))
}

// WellFormedKey reports whether text has a key's shape and checksum.
func WellFormedKey(text string) bool {
	if len(text) != keyLength || !strings.HasPrefix(text, KeyPrefix) {
		return false
	}
	body, check := text[:keyLength-keyChecksum], text[keyLength-keyChecksum:]
	return strings.Trim(body[len(KeyPrefix):], base62) == "" && keyCheck(body) == check
}

// HashKey returns the hash under which a key is stored and looked up.
func HashKey(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}

// PreviewKey returns the part of a key's text that may be shown.
func PreviewKey(key Secret) string {
	text := key.Reveal()
	return KeyPrefix + "…" + text[len(text)-4:]
}

func keyCheck(text string) string {
	sum := crc32.ChecksumIEEE([]byte(text))
	return encodeBase62([]byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)}, keyChecksum)
}

// encodeBase62 writes the big-endian number in data as width digits, zero-padded.
// Its timing need not be constant: keys are compared by hash.
func encodeBase62(data []byte, width int) string {
	number := slices.Clone(data)
	digits := make([]byte, width)
	for i := width - 1; i >= 0; i-- {
		rest := 0
		for j, b := range number {
			rest = rest<<8 | int(b)
			number[j] = byte(rest / 62)
			rest %= 62
		}
		digits[i] = base62[rest]
	}
	return string(digits)
}

// GeneratePassword makes a password of 32 base62 characters from 32 random
// bytes. (62 does not divide 256: the bias costs less than a tenth of a bit a
// character.)
func GeneratePassword(random [32]byte) Secret {
	text := make([]byte, len(random))
	for i, b := range random {
		text[i] = base62[int(b)%62]
	}
	return NewSecret(string(text))
}
