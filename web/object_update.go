package web

import (
	"maps"
	"mime"
	"net/url"
	"slices"
	"strings"
	"time"

	"holdfast/engine/model"
	"holdfast/engine/objects"
)

// objectForm holds the fields of the forms that change an object.
type objectForm struct {
	ContentType, Metadata, Tags, CacheControl, Disposition string
	Mode, Until                                            string // of the retention
	Hold                                                   bool
}

// newObjectForm returns the fields of a version.
func newObjectForm(o model.Object) objectForm {
	f := objectForm{ContentType: o.ContentType, Tags: pairLines(o.Tags)}
	if a := o.Attributes; a != nil {
		f.Metadata, f.CacheControl, f.Disposition = pairLines(a.Metadata), a.CacheControl, a.ContentDisposition
	}
	if l := o.Lock; l != nil {
		f.Hold = l.Hold
		if l.Mode != "" {
			f.Mode, f.Until = string(l.Mode), l.Until.UTC().Format(untilLayout)
		}
	}
	return f
}

// objectForm returns the fields as the user typed them in one of the forms, and those of the other.
func (req *request) objectForm(f objectForm) objectForm {
	if req.r.PostForm.Has("content_type") {
		f.ContentType, f.Metadata, f.Tags = req.form("content_type"), req.form("metadata"), req.form("tags")
		f.CacheControl, f.Disposition = req.form("cache_control"), req.form("content_disposition")
	}
	if req.r.PostForm.Has("mode") {
		f.Mode, f.Until, f.Hold = req.form("mode"), req.form("until"), req.checked("hold")
	}
	return f
}

// pairLines returns metadata or tags as lines NAME=VALUE.
func pairLines(of map[string]string) string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		lines = append(lines, name+"="+of[name])
	}
	return strings.Join(lines, "\n")
}

// pairs parses the lines of a form.
func (req *request) pairs(field string) (map[string]string, error) {
	all := map[string]string{}
	for line := range strings.Lines(req.form(field)) {
		line = strings.TrimRight(line, "\r\n")
		name, value, ok := strings.Cut(line, "=")
		_, twice := all[name]
		switch {
		case strings.TrimSpace(line) == "":
		case !ok || name == "" || twice:
			return nil, model.Invalid(field, "must be lines such as name=value, each name once")
		default:
			all[name] = value
		}
	}
	return all, nil
}

// objectVersion returns the version that a form was made for.
func (req *request) objectVersion() objects.VersionName {
	return objects.VersionName{Bucket: req.id(), Key: req.form("key"), Version: req.form("version")}
}

func (req *request) objectPath() string {
	return "/buckets/" + req.id() + "/object?" + url.Values{"key": {req.form("key")}, "done": {"object_updated"}}.Encode()
}

// objectUpdate changes what is stored with an object. What a form leaves as it was is not changed: a locked version
// keeps everything but its tags.
func (req *request) objectUpdate() (answer, error) {
	name := req.objectVersion()
	was, err := req.engine.Objects.VersionGet(req.call, name.Bucket, name.Key, name.Version)
	if err != nil {
		return answer{}, err
	}
	attributes := model.Attributes{}
	if was.Attributes != nil {
		attributes = *was.Attributes
	}
	var change objects.ObjectChange
	if change.Metadata, err = req.changedPairs("metadata", attributes.Metadata); err != nil {
		return answer{}, err
	}
	if change.Tags, err = req.changedPairs("tags", was.Tags); err != nil {
		return answer{}, err
	}
	change.CacheControl = req.changedText("cache_control", attributes.CacheControl)
	change.ContentDisposition = req.changedText("content_disposition", attributes.ContentDisposition)
	if change.ContentType = req.changedText("content_type", was.ContentType); change.ContentType != nil {
		media, parameters, err := mime.ParseMediaType(*change.ContentType)
		canonical := mime.FormatMediaType(media, parameters)
		if err != nil || !strings.Contains(media, "/") || canonical == "" {
			return answer{}, model.Invalid("content_type", "must be a media type such as image/png")
		}
		change.ContentType = &canonical
	}
	return answer{redirect: req.objectPath()}, req.engine.Objects.ObjectUpdate(req.call, name, change)
}

func (req *request) changedPairs(field string, was map[string]string) (map[string]string, error) {
	is, err := req.pairs(field)
	if err != nil || maps.Equal(is, was) {
		return nil, err
	}
	return is, nil
}

func (req *request) changedText(field, was string) *string {
	if is := strings.TrimSpace(req.form(field)); is != was {
		return &is
	}
	return nil
}

// untilLayout is how browsers send the value of a field for a time, which is in UTC here.
const untilLayout = "2006-01-02T15:04"

// objectLock changes the retention and the legal hold of a version.
func (req *request) objectLock() (answer, error) {
	change := objects.ObjectChange{
		Hold: new(req.checked("hold")), Bypass: req.checked("bypass"),
		Retention: &objects.Retention{Mode: model.LockMode(req.form("mode"))},
	}
	if change.Retention.Mode != "" {
		if _, err := model.ParseLockMode("mode", req.form("mode")); err != nil {
			return answer{}, err
		}
		var err error
		if change.Retention.Until, err = time.Parse(untilLayout, req.form("until")); err != nil {
			return answer{}, model.Invalid("until", "must be a time")
		}
	}
	name := req.objectVersion()
	was, err := req.engine.Objects.VersionGet(req.call, name.Bucket, name.Key, name.Version)
	if err != nil {
		return answer{}, err
	}
	if stored := newObjectForm(was.Object); stored.Mode == req.form("mode") && stored.Until == req.form("until") {
		change.Retention = nil // a field of a form has no seconds, so this would shorten it
	}
	return answer{redirect: req.objectPath()}, req.engine.Objects.ObjectUpdate(req.call, name, change)
}
