package model

import (
	"net"
	"net/netip"
	"strings"
	"unicode"
)

// ActorType says what kind of hand is behind a call.
type ActorType string

// The kinds of actor.
const (
	ActorKey      ActorType = "api_key"
	ActorUser     ActorType = "user"
	ActorOperator ActorType = "operator"
	ActorSystem   ActorType = "system"
)

// Actor is who does something: a key, a signed-in person, the operator on
// the machine, or the appliance by itself.
type Actor struct {
	Type ActorType `json:"type"`
	ID   string    `json:"id"`
	Name string    `json:"name"`
}

// Anybody is the actor of downloads without a key: public ones and refused ones.
func Anybody() Actor { return Actor{Type: ActorSystem, Name: "anybody"} }

// DownloadLink is the actor of downloads by a signed URL that is in force.
func DownloadLink() Actor { return Actor{Type: ActorSystem, Name: "download link"} }

// Call is one request on its way through the engine: who asks for what, on
// behalf of which organization, and what the audit entry will need. A Call
// belongs to one goroutine.
type Call struct {
	Operation Operation
	Actor     Actor
	// Organization is the id of the organization the actor belongs to; ""
	// for the operator and for requests without a valid key.
	Organization string
	// Key is the key of the request, nil when there is none.
	Key *Key
	// Role is that of the person, "" when it is none.
	Role      Role
	RequestID string
	IP        string
	UserAgent string
	// Browser is what an earlier sign-in gave the browser to keep, zero for
	// nothing. Known is set once it, or the address, is found to be one from
	// which the person has signed in before.
	Browser Secret
	Known   bool
	// Resource and Details are filled in on the way, for the audit entry.
	Resource Resource
	Details  map[string]string
	// Repeatable is how the call's client may repeat it, nil when it may not.
	Repeatable *Repeatable
	// Once is the id of the IdempotentRequest the call carries out, "" for none.
	Once string
	// Audited is set once an entry of this call is committed.
	Audited bool
}

// ClientIP returns the address of a request's client, of its RemoteAddr.
func ClientIP(remoteAddr string) string {
	if host, _, err := net.SplitHostPort(remoteAddr); err == nil {
		return host
	}
	return remoteAddr
}

// visitorNetwork is the length of the IPv6 prefix that is one visitor: what a
// provider gives a customer at the least (RFC 6177).
const visitorNetwork = 64

// VisitorOf names the visitor with an address: by the address, or by the
// network of an IPv6 address, whose owner has all others there, too.
func VisitorOf(ip string) string {
	if address, err := netip.ParseAddr(ip); err == nil && address.Is6() && !address.Is4In6() {
		if network, err := address.WithZone("").Prefix(visitorNetwork); err == nil {
			return network.String()
		}
	}
	return ip
}

// MaxUserAgent bounds, in bytes, what is kept of a client's name for itself.
const MaxUserAgent = 256

// CleanText removes control characters and what is not UTF-8, and cuts text
// to at most limit bytes.
func CleanText(text string, limit int) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			return -1
		}
		return r
	}, text[:min(len(text), limit)])
}

// Holds reports whether the caller may do what scope names: by its key, or by
// the person's role. The operator and the appliance hold every scope.
func (c *Call) Holds(scope Scope) bool {
	switch {
	case c.Key != nil:
		return c.Key.Holds(scope)
	case c.Actor.Type == ActorUser:
		return c.Role.Holds(scope)
	default:
		return c.Actor.Type != ActorKey
	}
}

// IsPerson reports whether a person asks, and not a program.
func (c *Call) IsPerson() bool { return c.Actor.Type == ActorUser }

// Note adds a detail to the call's audit entry. Values must not be secret.
func (c *Call) Note(name, value string) {
	if c.Details == nil {
		c.Details = map[string]string{}
	}
	c.Details[name] = value
}

// Outcome is how an audited request ended.
type Outcome string

// The outcomes.
const (
	OutcomeSuccess Outcome = "success"
	OutcomeDenied  Outcome = "denied"
	OutcomeError   Outcome = "error"
)

// OutcomeOf classifies the end of a request: refused before anything was
// tried, or tried and not done.
func OutcomeOf(err error) Outcome {
	switch CodeOf(err) {
	case "":
		return OutcomeSuccess
	case CodeUnauthorized, CodeInsufficientScope, CodeDangerousNotAllowed, CodeForbidden, CodeRateLimited:
		return OutcomeDenied
	default:
		return OutcomeError
	}
}
