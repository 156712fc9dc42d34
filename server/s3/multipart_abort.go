package s3

import (
	"net/http"
	"time"

	"holdfast/engine/model"
)

func (q *request) abortMultipart() error {
	b, err := q.findBucket()
	if err != nil {
		return err
	}
	if err := q.initiatedCondition(b); err != nil {
		return err
	}
	if err := q.engine.Objects.MultipartAbort(q.Request.Context(), q.Call, b.ID, q.key, q.query.Get("uploadId")); err != nil {
		return err
	}
	q.WriteHeader(http.StatusNoContent)
	return nil
}

// initiatedCondition refuses to abort an upload that was begun at another time than the client says. As in S3, a time in
// the future is no condition.
func (q *request) initiatedCondition(b model.Bucket) error {
	text := q.Request.Header.Get("X-Amz-If-Match-Initiated-Time")
	if text == "" {
		return nil
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return invalidArgument("x-amz-if-match-initiated-time", text, "The time is not valid")
	}
	m, err := q.engine.Objects.MultipartGet(q.Call, b.ID, q.key, q.query.Get("uploadId"))
	if err != nil {
		return err
	}
	if at.Before(q.engine.Core.Clock()) && !at.Equal(m.CreatedAt.Truncate(time.Second)) {
		return failedCondition("x-amz-if-match-initiated-time")
	}
	return nil
}
