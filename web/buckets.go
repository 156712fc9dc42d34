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

// bucketsData is what buckets.html shows.
type bucketsData struct {
	core.List[model.Bucket]
	Projects []model.Project
	Project  string // as the user chose it
	Name     string
	Public   bool
}

func (req *request) buckets(cause error) (answer, error) {
	data := bucketsData{Project: req.form("project"), Name: req.form("name"), Public: req.checked("public")}
	var err error
	if data.List, err = req.engine.Objects.BucketList(req.call, objects.BucketFilter{}, req.page()); err != nil {
		return answer{}, err
	}
	if data.Projects, err = req.engine.Access.Projects(req.call); err != nil {
		return answer{}, err
	}
	return answer{page: "buckets.html", title: "Buckets", data: data}, cause
}

// ProjectName returns the name of a project.
func (d bucketsData) ProjectName(id string) string {
	for _, p := range d.Projects {
		if p.ID == id {
			return p.Name
		}
	}
	return ""
}

func (req *request) bucketCreate() (answer, error) {
	b, err := req.engine.Objects.BucketCreate(req.call, objects.NewBucket{
		Project: req.form("project"), Name: req.form("name"), Public: req.checked("public"),
	})
	return done("/buckets/"+b.ID, "bucket_created"), err
}

// bucketData is what bucket.html shows: one folder.
type bucketData struct {
	Bucket model.Bucket
	Prefix string
	Crumbs []crumb
	objects.Folder
	PublicURL string
	Link      *bucketLink   // that was just made, nil for none
	Kept      time.Duration // how long deleted files are kept; 0 means not at all
	History   bucketHistory
	Site      websiteForm
	Form      bucketForm
}

// crumb is an ancestor of the folder that is shown.
type crumb struct{ Name, Prefix string }

// Base returns an entry's name within the folder that is shown.
func (d bucketData) Base(key string) string {
	if name := strings.TrimPrefix(key, d.Prefix); name != "" {
		return name
	}
	return "(the folder itself)"
}

func (req *request) bucket(cause error) (answer, error) {
	return req.bucketPage(cmp.Or(req.form("prefix"), req.r.URL.Query().Get("prefix")), cause)
}

func (req *request) bucketPage(prefix string, cause error) (answer, error) {
	data := bucketData{Prefix: prefix, Crumbs: crumbs(prefix), Kept: req.engine.Core.Config.ObjectTrashRetention}
	var err error
	if data.Bucket, err = req.engine.Objects.BucketGet(req.call, req.id()); err != nil {
		return answer{}, err
	}
	if data.Folder, err = req.engine.Objects.ObjectFolder(req.call, data.Bucket.ID, prefix, "/", req.page()); err != nil {
		return answer{}, err
	}
	if data.History.BucketHistory, err = req.engine.Objects.BucketHistory(req.call, data.Bucket.ID); err != nil {
		return answer{}, err
	}
	data.History.Latest = req.engine.Now()
	data.Site = req.websiteForm(data.Bucket)
	data.Form = req.bucketForm(data.Bucket)
	if may := data.Bucket.PublicRights(); may.Read || len(may.Prefixes) > 0 {
		data.PublicURL = cmp.Or(req.opts.ObjectsURL, req.opts.BaseURL) + objects.ObjectPath + data.Bucket.ID + "/"
	}
	return answer{page: "bucket.html", title: data.Bucket.Name, data: data, live: data.History.Running()}, cause
}

func crumbs(prefix string) []crumb {
	var all []crumb
	for i, r := range prefix {
		if r == '/' {
			last := 0
			if n := len(all); n > 0 {
				last = len(all[n-1].Prefix)
			}
			all = append(all, crumb{cmp.Or(prefix[last:i], "(no name)"), prefix[:i+1]})
		}
	}
	return all
}

// folderPath redirects to a folder.
func (req *request) folderPath(prefix, what string) answer {
	query := url.Values{}
	if prefix != "" {
		query.Set("prefix", prefix)
	}
	if what != "" {
		query.Set("done", what)
	}
	return answer{redirect: "/buckets/" + req.id() + "?" + query.Encode()}
}

// download redirects to a short-lived URL of the object.
func (req *request) download() (answer, error) {
	object, err := req.engine.Objects.ObjectGet(req.call, req.id(), req.r.URL.Query().Get("key"))
	return answer{redirect: req.opts.ObjectsURL + object.DownloadPath}, err
}

func (req *request) objectDelete() (answer, error) {
	prefix, key := req.form("prefix"), req.form("key")
	err := req.confirm(bucketData{Prefix: prefix}.Base(key))
	if err == nil {
		_, err = req.engine.Objects.ObjectDelete(req.r.Context(), req.call, objects.Deletion{Bucket: req.id(), Key: key})
	}
	return req.folderPath(prefix, "object_deleted"), err
}

// bucketUpdate changes who may read a bucket.
func (req *request) bucketUpdate() (answer, error) {
	public, listing := req.checked("public"), req.checked("public_listing")
	change := objects.BucketChange{Public: &public, PublicListing: &listing}
	if req.r.PostForm.Has("public_prefixes") {
		prefixes := lines(req.form("public_prefixes"))
		change.PublicPrefixes = &prefixes
	}
	return req.changeBucket(change)
}

// lines returns the lines of a text that are not empty.
func lines(text string) (all []string) {
	for line := range strings.Lines(text) {
		if line = strings.Trim(line, "\r\n"); line != "" {
			all = append(all, line)
		}
	}
	return all
}

// bucketExpire changes how long a bucket's files are kept.
func (req *request) bucketExpire() (answer, error) {
	b, err := req.engine.Objects.BucketGet(req.call, req.id())
	if err != nil {
		return answer{}, err
	}
	days := 0
	if text := strings.TrimSpace(req.form("expire_after_days")); text != "" {
		if days, err = strconv.Atoi(text); err != nil {
			return answer{}, model.Invalid("expire_after_days", "must be a number of days, or empty to keep files")
		}
	}
	if err := req.confirm(b.Name); err != nil {
		return answer{}, err
	}
	return req.changeBucket(objects.BucketChange{ExpireAfterDays: &days})
}

// bucketVersioning changes whether a bucket keeps versions.
func (req *request) bucketVersioning() (answer, error) {
	versioning := model.Versioning(req.form("versioning"))
	return req.changeBucket(objects.BucketChange{Versioning: &versioning})
}

// bucketLock has versions of a bucket locked.
func (req *request) bucketLock() (answer, error) {
	b, err := req.engine.Objects.BucketGet(req.call, req.id())
	if err != nil {
		return answer{}, err
	}
	lock := model.BucketLock{Mode: model.LockMode(req.form("mode"))}
	if lock.Mode != "" {
		if lock.Days, err = strconv.Atoi(strings.TrimSpace(req.form("days"))); err != nil {
			return answer{}, model.Invalid("days", "must be a number of days")
		}
	}
	if err := req.confirm(b.Name); err != nil {
		return answer{}, err
	}
	return req.changeBucket(objects.BucketChange{Lock: &lock})
}

func (req *request) changeBucket(change objects.BucketChange) (answer, error) {
	_, err := req.engine.Objects.BucketUpdate(req.call, req.id(), change)
	return done("/buckets/"+req.id(), "bucket_updated"), err
}

// bucketDelete deletes a bucket. It deletes files with it only if the user was
// told that the bucket has some.
func (req *request) bucketDelete() (answer, error) {
	b, err := req.engine.Objects.BucketGet(req.call, req.id())
	if err != nil {
		return answer{}, err
	}
	told, _ := strconv.ParseInt(req.form("files"), 10, 64) // not a number: the user was told nothing
	if err = req.confirm(b.Name); err == nil {
		_, err = req.engine.Objects.BucketDelete(req.call, b.ID, told > 0)
	}
	if model.CodeOf(err) == model.CodeConflict && told == 0 {
		err = model.Errorf(model.CodeConflict, "the bucket was empty when you saw it, and has files now")
	}
	return done("/buckets", "bucket_deleted"), err
}
