package s3

import (
	"net/http"
	"strconv"
)

// refuseExtensions refuses headers by which clients of MinIO ask for what S3 does not have.
func (q *request) refuseExtensions(h http.Header) error {
	names := []string{"X-Amz-Meta-Snowball-Auto-Extract", "X-Minio-Extract"}
	if q.key != "" { // a bucket is deleted if it is empty, as without the header
		names = append(names, "X-Minio-Force-Delete")
	}
	for _, name := range names {
		if on, err := strconv.ParseBool(h.Get(name)); on && err == nil {
			return notImplemented(name, "It is an extension of MinIO")
		}
	}
	return nil
}
