package model

import (
	"net"
	"net/netip"
	"strings"
	"unicode"
)

// ActorType is the kind of actor behind a call.
type ActorType string

// The kinds of actor.
const (
	ActorKey      ActorType = "api_key"
	ActorUser     ActorType = "user"
	ActorOperator ActorType = "operator"
	ActorSystem   ActorType = "system"
)

// Actor performs an action: a key, a signed-in person, the operator on the
// machine, or the appliance itself.
type Actor struct {
	Type ActorType `json:"type"`
	ID   string    `json:"id"`
	Name string    `json:"name"`
}

// Anybody is the actor of downloads without a key, public or refused.
func Anybody() Actor { return Actor{Type: ActorSystem, Name: "anybody"} }

// DownloadLink is the actor of downloads by a valid signed URL.
func DownloadLink() Actor { return Actor{Type: ActorSystem, Name: "download link"} }

// Call is one request on its way through the engine: the actor, the operation,
// the organization, and what the audit entry will need. A Call belongs to one
// goroutine.
type Call struct {
	Operation Operation
	Actor     Actor
	// Organization is the id of the organization the actor belongs to; ""
	// for the operator and for requests without a valid key.
	Organization string
	// Key is the key of the request, nil when there is none.
	Key *Key
	// Role is the person's role, "" if the caller is not a person.
	Role Role
	// Session is the TokenHash of the person's session, "" if the caller has none.
	Session string
	// Linked means that the request is signed by a link, a presigned URL or an HTML form: whoever sends it need not have
	// the key of its maker, the caller.
	Linked    bool
	RequestID string
	IP        string
	UserAgent string
	// Browser is the token that an earlier sign-in left in the browser, zero if there
	// is none. Known is set once that token or the address proves to be one from
	// which the person signed in before.
	Browser Secret
	Known   bool
	// Budgets are the budgets that the call draws on, after it did.
	Budgets []Budget
	// Resource and Details are filled in during the call, for the audit entry.
	Resource Resource
	Details  map[string]string
	// Repeatable describes how the client may repeat the call, nil if it may not.
	Repeatable *Repeatable
	// IfMatch holds the tags of which the resource must have one, nil for any: see Match.
	IfMatch []string
	// ETag is the tag of the resource that the response shows, "" for none.
	ETag string
	// Idempotent is the id of the IdempotentRequest the call carries out, "" for none.
	Idempotent string
	// Audited is set once an entry of this call is committed.
	Audited bool
}

// ClientIP returns the client's address from a request's RemoteAddr.
func ClientIP(remoteAddr string) string {
	if host, _, err := net.SplitHostPort(remoteAddr); err == nil {
		return host
	}
	return remoteAddr
}

// visitorNetwork is the length of the IPv6 prefix that counts as one visitor: the
// smallest network a provider assigns to a customer (RFC 6177).
const visitorNetwork = 64

// VisitorOf identifies a visitor by IPv4 address or by IPv6 network, because the
// owner of an IPv6 address has the whole network.
func VisitorOf(ip string) string {
	if address, err := netip.ParseAddr(ip); err == nil && address.Is6() && !address.Is4In6() {
		if network, err := address.WithZone("").Prefix(visitorNetwork); err == nil {
			return network.String()
		}
	}
	return ip
}

// MaxUserAgent is the maximum number of bytes kept of a User-Agent.
const MaxUserAgent = 256

// CleanText removes control characters and invalid UTF-8 after cutting text to at
// most limit bytes.
func CleanText(text string, limit int) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			return -1
		}
		return r
	}, text[:min(len(text), limit)])
}

// Holds reports whether the caller has scope through its key or the person's
// role. The operator and the appliance hold every scope.
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

// IsPerson reports whether the caller is a person, not a program.
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

// OutcomeOf classifies the result of a request: denied before anything was
// attempted, or attempted and failed.
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
