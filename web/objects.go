package web

import (
	"cmp"
	"net/url"
	"strconv"
	"strings"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/engine/objects"
)

// objectData is what object.html shows.
type objectData struct {
	Bucket   model.Bucket
	Key      string
	Name     string // of the file, within its folder
	Prefix   string // the folder
	Current  *objects.ObjectView
	Versions []objects.ListedVersion
	More     bool // there are versions that are not shown
	Now      time.Time
	Form     objectForm
}

// object shows what is stored with an object, and its versions.
func (req *request) object(cause error) (answer, error) {
	key := cmp.Or(req.form("key"), req.r.URL.Query().Get("key"))
	name := key[strings.LastIndexByte(key, '/')+1:]
	data := objectData{Key: key, Name: name, Prefix: strings.TrimSuffix(key, name), Now: req.engine.Core.Clock()}
	var err error
	if data.Bucket, err = req.engine.Objects.BucketGet(req.call, req.id()); err != nil {
		return answer{}, err
	}
	current, err := req.engine.Objects.ObjectGet(req.call, data.Bucket.ID, key)
	missing := model.CodeOf(err) == model.CodeNotFound
	if err == nil {
		data.Current, data.Form = &current, newObjectForm(current.Object)
		if cause != nil {
			data.Form = req.objectForm(data.Form)
		}
	} else if !missing {
		return answer{}, err
	}
	list, listErr := req.engine.Objects.Versions(req.call, data.Bucket.ID, key, core.Page{Limit: core.MaxLimit})
	if listErr != nil {
		return answer{}, listErr
	}
	data.More = list.Next != ""
	for _, v := range list.Items {
		if v.Key == key {
			data.Versions = append(data.Versions, v)
		} else {
			data.More = false
		}
	}
	if missing && len(data.Versions) == 0 {
		return answer{}, err
	}
	return answer{page: "object.html", title: data.Name, data: data}, cause
}

// bucketLink is a link for uploads that was made.
type bucketLink struct {
	URL    string
	Until  time.Time
	Prefix string // the link is for keys that begin so, "" for one key
}

// uploadLinkCreate makes a link for uploads, and shows it this once.
func (req *request) uploadLinkCreate() (answer, error) {
	hours, err := strconv.Atoi(cmp.Or(strings.TrimSpace(req.form("hours")), "1"))
	if err != nil || hours < 1 || time.Duration(hours)*time.Hour > objects.MaxLinkLife {
		return answer{}, model.Invalid("hours", "must be from 1 to %.0f", objects.MaxLinkLife.Hours())
	}
	link := objects.UploadLink{Method: objects.LinkByPut, Bucket: req.id(), Key: strings.TrimSpace(req.form("name"))}
	if strings.HasSuffix(link.Key, "/") {
		link.Key, link.Prefix = "", link.Key
	}
	text, until, err := req.engine.Objects.UploadLinkCreate(req.call, link, time.Duration(hours)*time.Hour)
	if err != nil {
		return answer{}, err
	}
	page, err := req.bucketPage(req.form("prefix"), nil)
	if data, ok := page.data.(bucketData); ok {
		data.Link = &bucketLink{cmp.Or(req.opts.ObjectsURL, req.opts.BaseURL) + link.Path(text), until, link.Prefix}
		page.data = data
	}
	return page, err
}

// ObjectPath returns the address of an object's page.
func (d bucketData) ObjectPath(key string) string {
	return "/buckets/" + d.Bucket.ID + "/object?" + url.Values{"key": {key}}.Encode()
}
