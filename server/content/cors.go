package content

import (
	"net/http"
	"strconv"
	"strings"

	"holdfast/engine/model"
)

// AllowOrigin lets the page of another origin that sends a request read the response, if a rule allows the request.
func AllowOrigin(h http.Header, rules []model.CORSRule, origin, method string) {
	if origin == "" || len(rules) == 0 {
		return
	}
	if rule, every := ruleFor(rules, origin, method, nil); rule != nil {
		writeRule(h, *rule, origin, every)
	}
}

// AllowPreflight answers what a browser asks before the request of a page of another origin, and reports whether a rule
// allows that request. headers are its headers in lower case.
func AllowPreflight(h http.Header, rules []model.CORSRule, origin, method string, headers []string) bool {
	rule, every := ruleFor(rules, origin, method, headers)
	if rule == nil {
		return false
	}
	writeRule(h, *rule, origin, every)
	if len(headers) > 0 {
		h.Set("Access-Control-Allow-Headers", strings.Join(headers, ", "))
	}
	return true
}

// RequestedHeaders parses Access-Control-Request-Headers. bad is a name that no header has.
func RequestedHeaders(text string) (names []string, bad string) {
	if text == "" {
		return nil, ""
	}
	for name := range strings.SplitSeq(text, ",") {
		if name = strings.TrimSpace(name); name != "" && !model.IsHeaderName(name) {
			return nil, name
		}
		names = append(names, strings.ToLower(name))
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

func writeRule(h http.Header, r model.CORSRule, origin string, every bool) {
	h.Add("Vary", "Origin, Access-Control-Request-Headers, Access-Control-Request-Method")
	if every {
		origin = "*"
	}
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Allow-Credentials", strconv.FormatBool(!every))
	h.Set("Access-Control-Allow-Methods", strings.Join(r.Methods, ", "))
	if len(r.Expose) > 0 {
		h.Set("Access-Control-Expose-Headers", strings.Join(r.Expose, ", "))
	}
	if r.MaxAgeSeconds != nil {
		h.Set("Access-Control-Max-Age", strconv.Itoa(int(*r.MaxAgeSeconds)))
	}
}

// IsPreflight reports whether a browser asks with a request whether a page of another origin may send one.
func IsPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Origin") != "" && r.Header.Get("Access-Control-Request-Method") != ""
}
