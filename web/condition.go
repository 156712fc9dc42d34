package web

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"holdfast/engine/model"
)

// matchField is the field with the tag of what a form shows of a resource. It is the ETag of the API, where that has
// one, and the form's If-Match.
const matchField = "if_match"

// readCondition has the call refused if the resource is not as the form showed it.
func (req *request) readCondition() (err error) {
	if tag := req.form(matchField); tag != "" {
		req.call.IfMatch, err = model.ParseMatch(matchField, tag)
	}
	return err
}

// conclude returns the error of a form's handler as people see it. If the resource has changed since the form was
// made, its page shows the present state, and beside it what was sent.
func (req *request) conclude(err error) error {
	refused, ok := errors.AsType[*model.Error](err)
	switch {
	case err == nil:
		req.keepOnce()
		return nil
	case req.sentBefore(err):
		return model.Errorf(model.CodeConflict, "this form was sent already, so nothing was done again. What it makes is shown only once: if you have not copied that, make another")
	case ok && refused.Reason == model.ReasonChanged:
		req.putAside()
		return &model.Error{
			Code: refused.Code, Reason: refused.Reason, Err: err,
			Message: "somebody changed this after you loaded the page, so nothing was saved. The page shows it as it is now: make your change again, if it is still right",
		}
	default:
		return err
	}
}

// putAside takes what was typed from the form, which keeps the fields that say what it is about.
func (req *request) putAside() {
	for _, name := range slices.Sorted(maps.Keys(req.r.PostForm)) {
		if slices.Contains([]string{"key", "version", "prefix"}, name) {
			continue
		}
		text := strings.Join(req.r.PostForm[name], ", ")
		if text != "" && name != matchField && name != "confirm" {
			req.sent = append(req.sent, fact{fieldName(name), text})
		}
		delete(req.r.PostForm, name)
	}
}

// fieldName returns the name of a form's field in words, or that of one of PostgreSQL's settings.
func fieldName(field string) string {
	if setting, is := strings.CutPrefix(field, settingPrefix); is {
		return setting
	}
	return humanize(field)
}
