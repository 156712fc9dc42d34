package web

import (
	"cmp"
	"time"

	"holdfast/engine/model"
	"holdfast/engine/objects"
)

// bucketRestoreData is what bucket_restore.html shows: the effect of a restore before it is made.
type bucketRestoreData struct {
	Bucket model.Bucket
	Plan   model.BucketRestore
	Point  string // the requested time, as the form sends it
}

// bucketPlan shows the plan for a moment. If the moment cannot be reached, it shows the error on the page where the user chose it.
func (req *request) bucketPlan(cause error) (answer, error) {
	point := cmp.Or(req.form("at"), req.r.URL.Query().Get("at"))
	at, err := parsePoint(point)
	if err != nil {
		return req.bucketPage("", cmp.Or(cause, err))
	}
	plan, err := req.engine.Objects.BucketRestorePlan(req.r.Context(), req.call, req.id(), at)
	if err != nil {
		return req.bucketPage("", cmp.Or(cause, err))
	}
	b, err := req.engine.Objects.BucketGet(req.call, req.id())
	if err != nil {
		return answer{}, err
	}
	return answer{page: "bucket_restore.html", title: b.Name, data: bucketRestoreData{Bucket: b, Plan: plan, Point: point}}, cause
}

func (req *request) bucketRestore() (answer, error) {
	b, err := req.engine.Objects.BucketGet(req.call, req.id())
	if err != nil {
		return answer{}, err
	}
	at, err := parsePoint(req.form("at"))
	if err == nil {
		err = req.confirm(b.Name)
	}
	if err == nil {
		_, err = req.engine.Objects.BucketRestore(req.call, b.ID, at)
	}
	return done("/buckets/"+req.id(), "bucket_restoring"), err
}

// bucketHistory says to which moments a bucket can be brought back, as its page shows it.
type bucketHistory struct {
	objects.BucketHistory
	Latest time.Time // the moment that the form proposes
}

// Running reports whether a restore is under way.
func (h bucketHistory) Running() bool {
	return h.Restore != nil && h.Restore.Status == model.BucketRestoreRunning
}
