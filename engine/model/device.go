package model

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// DeviceStatus is the state of a device's request for a key.
type DeviceStatus string

// The states of a device authorization. An approved one becomes delivered with
// the poll that mints its key. Denied and delivered are final, and so is expiry.
const (
	DevicePending   DeviceStatus = "pending"
	DeviceApproved  DeviceStatus = "approved"
	DeviceDenied    DeviceStatus = "denied"
	DeviceDelivered DeviceStatus = "delivered"
)

// The times of device login (RFC 8628, sections 3.2 and 3.5).
const (
	// DeviceLife is how long a device authorization can be approved and redeemed.
	DeviceLife = 15 * time.Minute
	// DeviceInterval is the initial time between two polls; DeviceSlowDown is added
	// to it after each poll that came too soon.
	DeviceInterval = 5 * time.Second
	DeviceSlowDown = 5 * time.Second
	// DeviceLeeway is how much sooner a poll may come, because timers and the network
	// vary even for a client that keeps to its interval.
	DeviceLeeway = time.Second
)

// DeviceAuthorization is a tool's request for a key, which a person approves or
// denies. Only hashes of its two codes are stored.
type DeviceAuthorization struct {
	ID           string       `json:"id"`
	DeviceHash   []byte       `json:"device_hash"` // SHA-256 of the device code
	UserHash     []byte       `json:"user_hash"`   // keyed: the user code is short
	ClientName   string       `json:"client_name"` // as the client names itself, "" for nothing
	Preset       Preset       `json:"preset"`      // requested
	IP           string       `json:"ip"`          // of the client
	CreatedAt    time.Time    `json:"created_at"`
	ExpiresAt    time.Time    `json:"expires_at"`
	Interval     int          `json:"interval"` // seconds between polls
	LastPolledAt *time.Time   `json:"last_polled_at"`
	Status       DeviceStatus `json:"status"`
	// Grant is the person's decision, nil until then and if denied.
	Grant *DeviceGrant `json:"grant"`
}

// DeviceGrant is the key that a person grants to a device.
type DeviceGrant struct {
	Organization   string     `json:"organization"`
	Preset         Preset     `json:"preset"`
	AllowDangerous bool       `json:"allow_dangerous"`
	KeyExpiresAt   *time.Time `json:"key_expires_at"`
	By             Actor      `json:"by"`
}

// Poll records a poll at now and reports whether it came too soon, in which case
// it lengthens the interval.
func (d *DeviceAuthorization) Poll(now time.Time) (tooSoon bool) {
	wait := time.Duration(d.Interval)*time.Second - DeviceLeeway
	tooSoon = d.LastPolledAt != nil && now.Sub(*d.LastPolledAt) < wait
	if tooSoon {
		d.Interval += int(DeviceSlowDown / time.Second)
	}
	d.LastPolledAt = &now
	return tooSoon
}

// userCodeAlphabet has no vowels, so codes spell no words, and no characters that
// look or sound like others (RFC 8628, section 6.1).
const (
	userCodeAlphabet = "BCDFGHJKLMNPQRSTVWXZ"
	userCodeLength   = 8
)

// FormatUserCode makes a user code such as WDJB-MJHT from random bytes, each from
// 0 to 19.
func FormatUserCode(random [userCodeLength]byte) string {
	code := make([]byte, userCodeLength)
	for i, b := range random {
		code[i] = userCodeAlphabet[int(b)%len(userCodeAlphabet)]
	}
	return string(code[:4]) + "-" + string(code[4:])
}

// UserCodeDigits is the number of values each byte for FormatUserCode can have.
const UserCodeDigits = len(userCodeAlphabet)

// NormalizeUserCode returns the code in the form that is hashed, however a person
// typed it: in any case, with or without the hyphen, with spaces. It returns ""
// if the text cannot be a code.
func NormalizeUserCode(typed string) string {
	code := strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.Is(unicode.Pd, r) || r == '_' || r == '.' {
			return -1
		}
		return unicode.ToUpper(r)
	}, typed)
	if len(code) != userCodeLength || strings.Trim(code, userCodeAlphabet) != "" {
		return ""
	}
	return code[:4] + "-" + code[4:]
}

// MaxClientName is the maximum length of a client's name, in characters.
const MaxClientName = 128

// ValidateClientName checks the name a client gives itself. A person reads and
// trusts it, so it contains nothing invisible.
func ValidateClientName(field, name string) error {
	invisible := func(r rune) bool { return !unicode.IsPrint(r) }
	if utf8.RuneCountInString(name) > MaxClientName || !utf8.ValidString(name) || strings.ContainsFunc(name, invisible) {
		return Invalid(field, "must have at most %d characters, all printable", MaxClientName)
	}
	return nil
}
