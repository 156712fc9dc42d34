package model

import "strings"

const (
	// MaxWebsiteRules is the maximum number of a website's rules.
	MaxWebsiteRules = 50
	// MaxWebsiteBytes is the maximum size in bytes of a website's configuration, as it is sent.
	MaxWebsiteBytes = 128 << 10
)

// Website says how the objects of a public bucket are served as a website.
type Website struct {
	// Index is added to a key that is empty or ends in /.
	Index string `json:"index,omitempty"`
	// Error is the key of the object that is the body of errors, "" for none.
	Error string `json:"error,omitempty"`
	// RedirectAll sends every request to another host; nothing else is set then.
	RedirectAll *WebsiteRedirect `json:"redirect_all,omitempty"`
	// Rules redirect some requests; the first that fits counts.
	Rules []WebsiteRule `json:"rules,omitempty"`
}

// WebsiteRule redirects the requests whose key begins with Prefix and whose status would be Status, 0 for any.
type WebsiteRule struct {
	Prefix   string          `json:"prefix,omitempty"`
	Status   int             `json:"status,omitempty"`
	Redirect WebsiteRedirect `json:"redirect"`
}

// WebsiteRedirect says where a request is sent. What is "" stays as the request has it.
type WebsiteRedirect struct {
	Host     string `json:"host,omitempty"`
	Protocol string `json:"protocol,omitempty"`
	// Status is the status of the answer, 0 for 301.
	Status int `json:"status,omitempty"`
	// Key takes the place of the key, and Prefix that of the rule's prefix in it; one at most is set.
	Key    *string `json:"key,omitempty"`
	Prefix *string `json:"prefix,omitempty"`
}

// To returns the key to which a rule with that prefix redirects a request for a key.
func (r WebsiteRedirect) To(key, prefix string) string {
	switch {
	case r.Key != nil:
		return *r.Key
	case r.Prefix != nil:
		return *r.Prefix + strings.TrimPrefix(key, prefix)
	}
	return key
}

// RuleFor returns the rule for a request for a key, nil if there is none. status is 0 before it is known, when only rules for
// any status fit.
func (w Website) RuleFor(key string, status int) *WebsiteRule {
	for _, r := range w.Rules {
		if strings.HasPrefix(key, r.Prefix) && r.Status == status {
			return &r
		}
	}
	return nil
}
