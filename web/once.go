package web

import (
	"errors"

	"holdfast/engine/core"
	"holdfast/engine/model"
)

// onceField is the field of forms whose response shows a secret: the id of the request for the page with the form.
const onceField = "once"

// noteOnce has a form carried out once: a browser that loads the response again sends it again. What was typed is part
// of the key, because a form that is filled in anew asks for something else.
func (req *request) noteOnce() {
	if req.form(onceField) != "" {
		req.call.Repeatable = &model.Repeatable{Key: req.r.PostForm.Encode(), Route: req.r.Method + " " + req.r.URL.RequestURI()}
	}
}

// keepOnce records that a form was carried out. What it showed is not kept.
func (req *request) keepOnce() {
	switch {
	case req.call.Repeatable == nil:
	case req.call.Idempotent == "":
		req.opts.Log.Error("an operation has not claimed its form", "operation", req.call.Operation.Action)
	default:
		req.engine.Core.EndIdempotent(req.call, []byte{})
	}
}

// sentBefore reports whether an error says that a form was carried out, or is being, when it was sent first. A conflict
// without a claim is the claim's, which comes first.
func (req *request) sentBefore(err error) bool {
	if _, done := errors.AsType[*core.FirstAnswer](err); done {
		return true
	}
	return req.call.Repeatable != nil && req.call.Idempotent == "" && model.CodeOf(err) == model.CodeConflict
}
