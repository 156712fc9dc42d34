package s3

import "net/http"

func (q *request) abortMultipart() error {
	b, err := q.findBucket()
	if err != nil {
		return err
	}
	if err := q.engine.Objects.MultipartAbort(q.Call, b.ID, q.key, q.query.Get("uploadId")); err != nil {
		return err
	}
	q.WriteHeader(http.StatusNoContent)
	return nil
}
