package s3

import (
	"errors"
	"net/http"

	"holdfast/engine/model"
	"holdfast/server/gate"
	"holdfast/server/s3/sigv4"
)

// publicRequest returns the handler of a request without a signature that a bucket's public rights may allow, nil for others.
func (s *Server) publicRequest(r *http.Request, q *request) http.Handler {
	switch {
	case isPublicRead(r, q):
		return s.publicRead(q)
	case isPublicList(r, q):
		return s.publicList(q)
	}
	return nil
}

// refuseUnsigned refuses a request without a signature, in the words that S3 has for what nobody may without one.
func (q *request) refuseUnsigned(header http.Header) error {
	subresource := q.subresource()
	_, copies := header["X-Amz-Copy-Source"]
	switch {
	case q.method == http.MethodPost && subresource == "uploads":
		return fail("AccessDenied", "Anonymous users cannot initiate multipart uploads. Please authenticate.")
	case subresource == "ownershipControls" && q.method == http.MethodGet:
		return fail("AccessDenied", "s3:GetBucketOwnershipControls does not support Anonymous requests!")
	case subresource == "ownershipControls":
		return fail("AccessDenied", "s3:PutBucketOwnershipControls does not support Anonymous requests!")
	case subresource == "" && copies:
		return fail("AccessDenied", "Anonymous users cannot copy objects. Please authenticate.")
	case subresource == "select", q.method == http.MethodPut && (subresource == "acl" || subresource == "" && q.key == ""):
		return fail("AccessDenied", "Anonymous users cannot invoke this API. Please authenticate.")
	}
	return fail("AccessDenied", "Access Denied.")
}

// isPublicRead reports whether a request without a signature reads an object, which everybody may if it is public.
func isPublicRead(r *http.Request, q *request) bool {
	if q.key == "" || r.Method != http.MethodGet && r.Method != http.MethodHead || sigv4.IsSigned(r) {
		return false
	}
	if q.subresource() != "" {
		return false
	}
	for name := range overrides() {
		if q.query.Has(name) { // as in S3, only with a signature
			return false
		}
	}
	return !q.query.Has("versionId") // earlier versions are not public
}

// publicRead serves a public object to everybody.
func (s *Server) publicRead(q *request) http.Handler {
	return s.gate.Handler(model.Operation{Action: model.ActionObjectDownload}, func(x *gate.Exchange) error {
		q.Exchange = x
		b, err := q.publicBucket(func(b model.Bucket) bool { return b.PublicRights().Reads(q.key) })
		if err != nil {
			return err
		}
		if err := errors.Join(checkKey(q.key), q.checkPartNumber()); err != nil {
			return err
		}
		return q.sendPublic(b, q.key)
	})
}

// isPublicList reports whether a request without a signature lists the keys of a bucket, or asks for its location or whether it is
// there, as clients do first.
func isPublicList(r *http.Request, q *request) bool {
	if q.bucket == "" || q.key != "" || sigv4.IsSigned(r) {
		return false
	}
	switch q.subresource() {
	case "", "location":
		return r.Method == http.MethodGet || r.Method == http.MethodHead && q.subresource() == ""
	}
	return false
}

// publicList serves the list of a bucket that everybody may list.
func (s *Server) publicList(q *request) http.Handler {
	lists := func(b model.Bucket) bool { return b.PublicListing }
	var answer func() error
	switch {
	case q.method == http.MethodHead:
		answer = q.headBucket
	case q.subresource() == "location":
		answer = q.bucketLocation
	default:
		answer = q.listObjects
		lists = func(b model.Bucket) bool { return b.PublicRights().Lists(q.query.Get("prefix")) }
	}
	return s.gate.Handler(model.Operation{Action: model.ActionObjectList}, func(x *gate.Exchange) error {
		q.Exchange = x
		if _, err := q.publicBucket(lists); err != nil {
			return err
		}
		return answer()
	})
}

// publicBucket returns the bucket of a request without a signature, which then belongs to the bucket's organization.
func (q *request) publicBucket(allows func(model.Bucket) bool) (model.Bucket, error) {
	b, err := q.engine.Objects.BucketForEverybody(q.Call, q.bucket)
	if model.CodeOf(err) == model.CodeNotFound || err == nil && !allows(b) {
		return b, fail("AccessDenied", "Access Denied.")
	}
	if err == nil {
		q.allowOrigin(b)
	}
	return b, err
}
