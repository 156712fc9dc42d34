package s3

import (
	"errors"
	"net/http"

	"holdfast/engine/model"
	"holdfast/server/content"
	"holdfast/server/gate"
	"holdfast/server/s3/sigv4"
)

// isPublicRead reports whether a request without a signature reads an object, which everybody may in a public bucket.
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

// publicRead serves an object of a public bucket to everybody.
func (s *Server) publicRead(q *request) http.Handler {
	return s.gate.Handler(model.Operation{Action: model.ActionObjectDownload}, func(x *gate.Exchange) error {
		q.Exchange = x
		b, err := s.engine.Objects.BucketForEverybody(x.Call, q.bucket)
		if model.CodeOf(err) == model.CodeNotFound {
			return fail("AccessDenied", "Access Denied.")
		}
		if err != nil {
			return err
		}
		q.allowOrigin(b)
		if err := errors.Join(checkKey(q.key), q.checkPartNumber()); err != nil {
			return err
		}
		if x.Request.Method == http.MethodHead {
			o, err := s.engine.Objects.ObjectDownloadHead(x.Call, b.ID, q.key, "")
			if err != nil {
				return err
			}
			return q.send(o.Object, content.OfSize(o.SizeBytes))
		}
		object, err := s.engine.Objects.ObjectDownload(x.Request.Context(), x.Call, b.ID, q.key, "")
		if err != nil {
			return err
		}
		defer object.Content.Close()
		if err := q.send(object.Object, object.Content); errors.Is(err, errStored) {
			return s.engine.Objects.Unreadable(object.Object, err)
		} else if err != nil {
			return err
		}
		return nil
	})
}
