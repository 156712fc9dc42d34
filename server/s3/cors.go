package s3

import (
	"net/http"

	"holdfast/engine/model"
	"holdfast/server/content"
	"holdfast/server/gate"
)

// exposedHeader may be read by the pages of other origins that a rule lets in, whatever the rule exposes, as by the API: without
// the ETags of its parts a page cannot complete a multipart upload.
const exposedHeader = "ETag"

// allowOrigin lets the page of another origin read the response, if the bucket's rules allow it.
func (q *request) allowOrigin(b model.Bucket) {
	content.AllowOrigin(q.Header(), b.CORS, q.Request.Header.Get("Origin"), q.method, exposedHeader)
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
		if !model.IsCORSMethod(method) {
			return fail("BadRequest", "Invalid Access-Control-Request-Method: %s", method)
		}
		headers, bad := content.RequestedHeaders(header.Get("Access-Control-Request-Headers"))
		if bad != "" {
			return fail("BadRequest", `Access-Control-Request-Headers "%s" contains invalid character.`, bad)
		}
		return q.answerPreflight(origin, method, headers)
	})
}

// answerPreflight tells strangers nothing of a bucket without rules, not even whether it exists. Rules are there for the
// pages of others, so that a bucket has some is no secret.
func (q *request) answerPreflight(origin, method string, headers []string) error {
	buckets, err := q.engine.Objects.BucketsNamed(q.bucket)
	if err != nil {
		return err
	}
	why := "CORSResponse: CORS is not enabled for this bucket."
	for _, b := range buckets {
		if len(b.CORS) > 0 {
			why = "CORSResponse: This CORS request is not allowed. This is usually because the evalution of Origin, request method / Access-Control-Request-Method or Access-Control-Request-Headers are not whitelisted by the resource's CORS spec."
		}
		if content.AllowPreflight(q.Header(), b.CORS, origin, method, headers, exposedHeader) {
			q.WriteHeader(http.StatusOK)
			return nil
		}
	}
	return q.forbidden(why, method)
}

func (q *request) forbidden(message, method string) error {
	resource := "BUCKET"
	if q.key != "" {
		resource = "OBJECT"
	}
	return fail("AccessForbidden", "%s", message).with("Method", method).with("ResourceType", resource)
}
