package content

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"holdfast/engine/model"
)

// AllowOrigin lets the page of another origin that sends a request read the response, if a rule allows the request.
// exposed are headers that the page may read beside those of the rule.
func AllowOrigin(h http.Header, rules []model.CORSRule, origin, method string, exposed ...string) {
	if origin == "" || len(rules) == 0 {
		return
	}
	if rule, every := ruleFor(rules, origin, method, nil); rule != nil {
		writeRule(h, *rule, origin, every, exposed)
	}
}

// Preflight answers what a browser asks with r before the request of a page of another origin, and reports whether a
// rule allows that request.
func Preflight(h http.Header, rules []model.CORSRule, r *http.Request) bool {
	headers, bad := RequestedHeaders(r.Header.Get("Access-Control-Request-Headers"))
	return bad == "" && AllowPreflight(h, rules, r.Header.Get("Origin"), r.Header.Get("Access-Control-Request-Method"), headers)
}

// AllowPreflight answers what a browser asks before the request of a page of another origin, and reports whether a rule
// allows that request. headers are its headers in lower case, exposed those of the response that the page may read beside
// those of the rule.
func AllowPreflight(h http.Header, rules []model.CORSRule, origin, method string, headers []string, exposed ...string) bool {
	rule, every := ruleFor(rules, origin, method, headers)
	if rule == nil {
		return false
	}
	writeRule(h, *rule, origin, every, exposed)
	if len(headers) > 0 {
		h.Set("Access-Control-Allow-Headers", strings.Join(headers, ", "))
	}
	if method == http.MethodPatch {
		h.Set("Access-Control-Allow-Methods", strings.Join(append(slices.Clone(rule.Methods), method), ", "))
	}
	return true
}

// maxRequestedHeaders bounds the headers of one request that are compared with the rules.
const maxRequestedHeaders = 100

// RequestedHeaders parses Access-Control-Request-Headers. bad is a name that no header has, or one too many.
func RequestedHeaders(text string) (names []string, bad string) {
	if text == "" {
		return nil, ""
	}
	for name := range strings.SplitSeq(text, ",") {
		trimmed := strings.TrimSpace(name)
		if trimmed != "" && !model.IsHeaderName(trimmed) || len(names) == maxRequestedHeaders {
			return nil, name
		}
		names = append(names, strings.ToLower(trimmed))
	}
	return names, ""
}

// ruleFor returns the first rule that allows a request, nil if there is none, and whether it allows those of every origin.
func ruleFor(rules []model.CORSRule, origin, method string, headers []string) (*model.CORSRule, bool) {
	for _, r := range rules {
		if ok, every := r.Allows(origin, method, headers); ok {
			return &r, every
		}
	}
	return nil, false
}

func writeRule(h http.Header, r model.CORSRule, origin string, every bool, exposed []string) {
	h.Add("Vary", "Origin, Access-Control-Request-Headers, Access-Control-Request-Method")
	if every {
		origin = "*"
	}
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Allow-Credentials", strconv.FormatBool(!every))
	h.Set("Access-Control-Allow-Methods", strings.Join(r.Methods, ", "))
	expose := slices.Clone(r.Expose)
	for _, name := range exposed {
		if !slices.ContainsFunc(expose, func(e string) bool { return strings.EqualFold(e, name) }) {
			expose = append(expose, name)
		}
	}
	if len(expose) > 0 {
		h.Set("Access-Control-Expose-Headers", strings.Join(expose, ", "))
	}
	if r.MaxAgeSeconds != nil {
		h.Set("Access-Control-Max-Age", strconv.Itoa(int(*r.MaxAgeSeconds)))
	}
}

// IsPreflight reports whether a browser asks with a request whether a page of another origin may send one.
func IsPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Origin") != "" && r.Header.Get("Access-Control-Request-Method") != ""
}
