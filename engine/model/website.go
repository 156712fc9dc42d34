package model

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

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

// Validate checks the configuration of a website. Its messages name the fields as the API does.
func (w Website) Validate(field string) error {
	if all := w.RedirectAll; all != nil {
		switch {
		case w.Index != "" || w.Error != "" || len(w.Rules) > 0:
			return Invalid(field+".redirect_host", "must not be together with index_document, error_document or rules")
		case all.Host == "":
			return Invalid(field+".redirect_host", "must name a host")
		}
		return all.validate(field)
	}
	switch {
	case !IsIndexDocument(w.Index):
		return Invalid(field+".index_document", "must be a name without slashes, such as index.html; or give a redirect_host")
	case w.Error != "" && ValidateObjectKey("key", w.Error) != nil:
		return Invalid(field+".error_document", "must be the key of an object")
	case len(w.Rules) > MaxWebsiteRules:
		return Invalid(field+".rules", "must have at most %d rules", MaxWebsiteRules)
	}
	for _, r := range w.Rules {
		if err := r.validate(field + ".rules"); err != nil {
			return err
		}
	}
	if text, err := json.Marshal(w); err != nil || len(text) > MaxWebsiteBytes {
		return Invalid(field, "must take at most %d bytes", MaxWebsiteBytes)
	}
	return nil
}

func (r WebsiteRule) validate(field string) error {
	to := r.Redirect
	switch {
	case r.Status != 0 && !IsErrorStatus(r.Status):
		return Invalid(field, "must have an error_status of HTTP, from 400 to 505")
	case to == WebsiteRedirect{}:
		return Invalid(field, "must each redirect: to a host, a protocol or another key, or with a status")
	case to.Key != nil && to.Prefix != nil:
		return Invalid(field, "must not have both replace_key and replace_key_prefix")
	case to.Status != 0 && !IsRedirectStatus(to.Status):
		return Invalid(field, "must have a redirect_status of 301, 302, 303, 307 or 308")
	}
	return to.validate(field)
}

func (r WebsiteRedirect) validate(field string) error {
	switch {
	case !IsWebsiteHost(r.Host):
		return Invalid(field, "must have a redirect_host that is a host name, with or without a port")
	case r.Protocol != "" && !IsWebsiteProtocol(r.Protocol):
		return Invalid(field, "must have a redirect_protocol of http or https")
	}
	return nil
}

// IsIndexDocument reports whether a name can be added to the keys of folders.
func IsIndexDocument(name string) bool {
	return !strings.Contains(name, "/") && ValidateObjectKey("key", name) == nil
}

// IsErrorStatus reports whether a status of HTTP can be what a rule is about.
func IsErrorStatus(n int) bool {
	return n >= 400 && http.StatusText(n) != "" && n != http.StatusTeapot && n <= http.StatusHTTPVersionNotSupported
}

// IsRedirectStatus reports whether a status of HTTP redirects.
func IsRedirectStatus(n int) bool {
	return slices.Contains([]int{http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect}, n)
}

// IsWebsiteProtocol reports whether a redirect can be to URLs of a scheme.
func IsWebsiteProtocol(scheme string) bool { return scheme == "http" || scheme == "https" }

// IsWebsiteHost reports whether text can be the host of a URL, with or without a port, or is "".
func IsWebsiteHost(text string) bool { return len(text) <= 255 && websiteHost.MatchString(text) }

var websiteHost = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?)?$`)
