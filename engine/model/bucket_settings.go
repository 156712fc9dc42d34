package model

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// The limits of the CORS rules of a bucket, as S3 has them: they are in the bucket's record.
const (
	MaxCORSRules = 100
	MaxCORSBytes = 64 << 10
)

// CORSRule says from which pages of other origins browsers may use a bucket: by the S3 protocol, the API, resumable
// uploads and links.
type CORSRule struct {
	ID string `json:"id,omitempty"`
	// Origins and Headers may have one * each, for any text.
	Origins []string `json:"origins"`
	Methods []string `json:"methods"`
	Headers []string `json:"headers,omitempty"`
	// Expose are the headers of responses that pages may read.
	Expose []string `json:"expose,omitempty"`
	// MaxAgeSeconds is how long browsers may keep the answer, nil for their own default.
	MaxAgeSeconds *int32 `json:"max_age_seconds,omitempty"`
}

var headerName = regexp.MustCompile("^[!#$%&'*+\\-.^_`|~0-9A-Za-z]+$")

// IsHeaderName reports whether text can be the name of a header.
func IsHeaderName(text string) bool { return headerName.MatchString(text) }

// IsCORSMethod reports whether a rule can name the method.
func IsCORSMethod(method string) bool {
	return slices.Contains([]string{http.MethodGet, http.MethodPut, http.MethodHead, http.MethodPost, http.MethodDelete}, method)
}

// ValidateCORS checks the rules of a bucket.
func ValidateCORS(field string, rules []CORSRule) error {
	if len(rules) > MaxCORSRules {
		return Invalid(field, "must be at most %d rules", MaxCORSRules)
	}
	for _, r := range rules {
		if len(r.Origins) == 0 || len(r.Methods) == 0 {
			return Invalid(field, "must have rules with origins and methods")
		}
		for _, pattern := range slices.Concat(r.Origins, r.Headers) {
			if strings.Count(pattern, "*") > 1 {
				return Invalid(field, "must have at most one * in an origin or header")
			}
			if strings.ContainsFunc(pattern, unicode.IsControl) {
				return Invalid(field, "must have no control characters in an origin or header")
			}
		}
		if i := slices.IndexFunc(r.Methods, func(m string) bool { return !IsCORSMethod(m) }); i >= 0 {
			return Invalid(field, "must have the methods GET, HEAD, PUT, POST and DELETE, not %q", r.Methods[i])
		}
		if slices.ContainsFunc(slices.Concat(r.Headers, r.Expose), func(h string) bool { return !IsHeaderName(h) }) {
			return Invalid(field, "must have names of headers in headers and expose_headers")
		}
	}
	if stored, err := json.Marshal(rules); err != nil || len(stored) > MaxCORSBytes {
		return Invalid(field, "must have at most %d bytes in all", MaxCORSBytes)
	}
	return nil
}

// Allows reports whether the rule allows a request, and whether it allows those of every origin. Rules cannot name PATCH,
// which S3 does not have: it is allowed where PUT is.
func (r CORSRule) Allows(origin, method string, headers []string) (allowed, everyOrigin bool) {
	if method == http.MethodPatch {
		method = http.MethodPut
	}
	if !anyMatches(r.Origins, origin) || !anyMatches(r.Methods, method) {
		return false, false
	}
	for _, h := range headers {
		if !anyMatches(r.Headers, h) {
			return false, false
		}
	}
	return true, anyMatches(r.Origins, "*")
}

// anyMatches reports whether one of the patterns, which may have one *, matches a text, in whatever case.
func anyMatches(patterns []string, text string) bool {
	for _, p := range patterns {
		p, text := strings.ToLower(p), strings.ToLower(text)
		before, after, wild := strings.Cut(p, "*")
		if p == text || wild && len(text) >= len(p)-1 && strings.HasPrefix(text, before) && strings.HasSuffix(text, after) {
			return true
		}
	}
	return false
}
