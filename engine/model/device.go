package model

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// DeviceStatus is how far a device's request for a key is.
type DeviceStatus string

// The states of a device authorization. An approved one becomes delivered with
// the poll that mints its key; denied and delivered are final, and so is the
// end of its time.
const (
	DevicePending   DeviceStatus = "pending"
	DeviceApproved  DeviceStatus = "approved"
	DeviceDenied    DeviceStatus = "denied"
	DeviceDelivered DeviceStatus = "delivered"
)

// The times of device login (RFC 8628, sections 3.2 and 3.5).
const (
	// DeviceLife is how long a device authorization can be approved and
	// collected.
	DeviceLife = 15 * time.Minute
	// DeviceInterval is how long a client waits between two polls at first,
	// and DeviceSlowDown by how much more after each that came too soon.
	DeviceInterval = 5 * time.Second
	DeviceSlowDown = 5 * time.Second
	// DeviceLeeway is how much sooner a poll may come: what a timer and the
	// network make of a client that keeps to its interval.
	DeviceLeeway = time.Second
)

// DeviceAuthorization is a tool's request for a key, which a person approves
// or denies. Neither of its codes is kept, only their hashes.
type DeviceAuthorization struct {
	ID           string       `json:"id"`
	DeviceHash   []byte       `json:"device_hash"` // SHA-256 of the device code
	UserHash     []byte       `json:"user_hash"`   // keyed: the user code is short
	ClientName   string       `json:"client_name"` // as the client calls itself, "" for nothing
	Preset       Preset       `json:"preset"`      // asked for
	IP           string       `json:"ip"`          // of the client
	CreatedAt    time.Time    `json:"created_at"`
	ExpiresAt    time.Time    `json:"expires_at"`
	Interval     int          `json:"interval"` // seconds between polls
	LastPolledAt *time.Time   `json:"last_polled_at"`
	Status       DeviceStatus `json:"status"`
	// Grant is what the person decided, nil until then and when denied.
	Grant *DeviceGrant `json:"grant"`
}

// DeviceGrant is the key that a person lets a device have.
type DeviceGrant struct {
	Organization   string     `json:"organization"`
	Preset         Preset     `json:"preset"`
	AllowDangerous bool       `json:"allow_dangerous"`
	KeyExpiresAt   *time.Time `json:"key_expires_at"`
	By             Actor      `json:"by"`
}

// Poll notes a poll at now and reports whether it came too soon; then the
// interval has grown.
func (d *DeviceAuthorization) Poll(now time.Time) (tooSoon bool) {
	wait := time.Duration(d.Interval)*time.Second - DeviceLeeway
	tooSoon = d.LastPolledAt != nil && now.Sub(*d.LastPolledAt) < wait
	if tooSoon {
		d.Interval += int(DeviceSlowDown / time.Second)
	}
	d.LastPolledAt = &now
	return tooSoon
}

// userCodeAlphabet has neither vowels, so that no word is spelt, nor what
// looks or sounds like something else (RFC 8628, section 6.1).
const (
	userCodeAlphabet = "BCDFGHJKLMNPQRSTVWXZ"
	userCodeLength   = 8
)

// FormatUserCode makes a user code such as WDJB-MJHT of random bytes, each of
// which is 0 to 19.
func FormatUserCode(random [userCodeLength]byte) string {
	code := make([]byte, userCodeLength)
	for i, b := range random {
		code[i] = userCodeAlphabet[int(b)%len(userCodeAlphabet)]
	}
	return string(code[:4]) + "-" + string(code[4:])
}

// UserCodeDigits is how many values each byte for FormatUserCode can have.
const UserCodeDigits = len(userCodeAlphabet)

// NormalizeUserCode returns the code in the form it is hashed in, however a
// person typed it: in any case, with or without the hyphen, with spaces. ""
// when it cannot be one.
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

// MaxClientName is how long a client's name may be, in characters.
const MaxClientName = 128

// ValidateClientName checks the name a client gives itself. A person will
// read it and trust it, so it holds nothing invisible.
func ValidateClientName(field, name string) error {
	invisible := func(r rune) bool { return !unicode.IsPrint(r) }
	if utf8.RuneCountInString(name) > MaxClientName || !utf8.ValidString(name) || strings.ContainsFunc(name, invisible) {
		return Invalid(field, "must have at most %d characters, all printable", MaxClientName)
	}
	return nil
}
