package s3

import (
	"net/http"
	"strconv"
	"strings"

	"holdfast/engine/model"
	"holdfast/server/gate"
)

// allowOrigin lets the page of another origin read the response, if the bucket's rules allow it.
func (q *request) allowOrigin(b model.Bucket) {
	origin := q.Request.Header.Get("Origin")
	if origin == "" || len(b.CORS) == 0 {
		return
	}
	if rule, every := corsRuleFor(b, origin, q.method, nil); rule != nil {
		writeCORS(q.Header(), *rule, origin, every)
	}
}

// corsRuleFor returns the first rule of a bucket that allows a request, nil if there is none, and whether it allows those
// of every origin.
func corsRuleFor(b model.Bucket, origin, method string, headers []string) (*model.CORSRule, bool) {
	for _, r := range b.CORS {
		if ok, every := r.Allows(origin, method, headers); ok {
			return &r, every
		}
	}
	return nil, false
}

func writeCORS(h http.Header, r model.CORSRule, origin string, every bool) {
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

// preflight answers what a browser asks before the request of a page of another origin. It has no key, so it may be about
// the bucket of that name in any organization; the request that follows is decided by its own bucket's rules.
func (s *Server) preflight(q *request) http.Handler {
	op := model.Operation{Action: model.ActionObjectDownload}
	return s.gate.Handler(op, func(x *gate.Exchange) error {
		q.Exchange = x
		header := x.Request.Header
		origin, method := header.Get("Origin"), header.Get("Access-Control-Request-Method")
		if origin == "" {
			return fail("BadRequest", "Insufficient information. Origin request header needed.")
		}
		if !isCORSMethod(method) {
			return fail("BadRequest", "Invalid Access-Control-Request-Method: %s", method)
		}
		headers, err := requestedHeaders(header.Get("Access-Control-Request-Headers"))
		if err != nil {
			return err
		}
		return q.answerPreflight(origin, method, headers)
	})
}

// requestedHeaders reads a list of names of headers.
func requestedHeaders(text string) (names []string, err error) {
	if text == "" {
		return nil, nil
	}
	for name := range strings.SplitSeq(text, ",") {
		if name = strings.TrimSpace(name); name != "" && !headerName.MatchString(name) {
			return nil, fail("BadRequest", `Access-Control-Request-Headers "%s" contains invalid character.`, name)
		}
		names = append(names, strings.ToLower(name))
	}
	return names, nil
}

func (q *request) answerPreflight(origin, method string, headers []string) error {
	buckets, err := q.engine.Objects.BucketsNamed(q.bucket)
	if err != nil {
		return err
	}
	if len(buckets) == 0 {
		return fail("NoSuchBucket", "The specified bucket does not exist.")
	}
	configured := false
	for _, b := range buckets {
		configured = configured || len(b.CORS) > 0
		if rule, every := corsRuleFor(b, origin, method, headers); rule != nil {
			writeCORS(q.Header(), *rule, origin, every)
			if len(headers) > 0 {
				q.Header().Set("Access-Control-Allow-Headers", strings.Join(headers, ", "))
			}
			q.WriteHeader(http.StatusOK)
			return nil
		}
	}
	if !configured {
		return q.forbidden("CORSResponse: CORS is not enabled for this bucket.", method)
	}
	return q.forbidden("CORSResponse: This CORS request is not allowed. This is usually because the evalution of Origin, request method / Access-Control-Request-Method or Access-Control-Request-Headers are not whitelisted by the resource's CORS spec.", method)
}

func (q *request) forbidden(message, method string) error {
	resource := "BUCKET"
	if q.key != "" {
		resource = "OBJECT"
	}
	return fail("AccessForbidden", "%s", message).with("Method", method).with("ResourceType", resource)
}
