package web

import (
	"cmp"
	"net/url"
	"strconv"
	"strings"
	"time"

	"holdfast/engine"
	"holdfast/engine/model"
)

// bucketsData is what buckets.html shows.
type bucketsData struct {
	engine.List[model.Bucket]
	Projects []model.Project
	Project  string // as it was chosen
	Name     string
	Public   bool
}

func (v *visit) buckets() (answer, error) { return v.bucketsPage(bucketsData{}, nil) }

func (v *visit) bucketsPage(data bucketsData, cause error) (answer, error) {
	var err error
	if data.List, err = v.engine.BucketList(v.call, v.page()); err != nil {
		return answer{}, err
	}
	if data.Projects, err = v.engine.Projects(v.call); err != nil {
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

func (v *visit) typedBucket() bucketsData {
	return bucketsData{Project: v.form("project"), Name: v.form("name"), Public: v.checked("public")}
}

func (v *visit) bucketAgain(cause error) (answer, error) {
	return v.bucketsPage(v.typedBucket(), cause)
}

func (v *visit) bucketCreate() (answer, error) {
	data := v.typedBucket()
	b, err := v.engine.BucketCreate(v.call, engine.NewBucket{Project: data.Project, Name: data.Name, Public: data.Public})
	if err != nil {
		return v.bucketsPage(data, err)
	}
	return done("/buckets/"+b.ID, "bucket_created"), nil
}

// bucketData is what bucket.html shows: one folder.
type bucketData struct {
	Bucket model.Bucket
	Prefix string
	Crumbs []crumb
	engine.Folder
	PublicURL string
	Kept      time.Duration // how long deleted files are kept, 0 for not at all
}

// crumb is a folder on the way to the one that is shown.
type crumb struct{ Name, Prefix string }

// Base is the last part of an entry's key, in the folder that is shown.
func (d bucketData) Base(key string) string {
	if name := strings.TrimPrefix(key, d.Prefix); name != "" {
		return name
	}
	return "(the folder itself)"
}

func (v *visit) bucket() (answer, error) {
	return v.bucketPage(v.r.URL.Query().Get("prefix"), nil)
}

func (v *visit) bucketPage(prefix string, cause error) (answer, error) {
	data := bucketData{Prefix: prefix, Crumbs: crumbs(prefix), Kept: v.engine.About().Objects}
	var err error
	if data.Bucket, err = v.engine.BucketGet(v.call, v.r.PathValue("id")); err != nil {
		return answer{}, err
	}
	if data.Folder, err = v.engine.ObjectFolder(v.call, data.Bucket.ID, prefix, "/", v.page()); err != nil {
		return answer{}, err
	}
	if data.Bucket.Public {
		data.PublicURL = cmp.Or(v.opts.ObjectsURL, v.opts.BaseURL) + engine.ObjectPath + data.Bucket.ID + "/"
	}
	return answer{page: "bucket.html", title: data.Bucket.Name, data: data}, cause
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

// folderPath is where a folder is shown.
func (v *visit) folderPath(prefix, what string) answer {
	query := url.Values{}
	if prefix != "" {
		query.Set("prefix", prefix)
	}
	if what != "" {
		query.Set("done", what)
	}
	return answer{redirect: "/buckets/" + v.r.PathValue("id") + "?" + query.Encode()}
}

// download leads to the object's bytes, at a URL that works for a while.
func (v *visit) download() (answer, error) {
	object, err := v.engine.ObjectGet(v.call, v.r.PathValue("id"), v.r.URL.Query().Get("key"))
	return answer{redirect: v.opts.ObjectsURL + object.DownloadPath}, err
}

func (v *visit) objectDelete() (answer, error) {
	prefix, key := v.form("prefix"), v.form("key")
	err := v.confirm(bucketData{Prefix: prefix}.Base(key))
	if err == nil {
		_, err = v.engine.ObjectDelete(v.r.Context(), v.call, v.r.PathValue("id"), key)
	}
	if err != nil {
		return v.bucketPage(prefix, err)
	}
	return v.folderPath(prefix, "object_deleted"), nil
}

// bucketUpdate changes who may read a bucket.
func (v *visit) bucketUpdate() (answer, error) {
	public := v.checked("public")
	return v.changeBucket(engine.BucketChange{Public: &public})
}

// bucketExpire changes how long a bucket's files are kept.
func (v *visit) bucketExpire() (answer, error) {
	b, err := v.engine.BucketGet(v.call, v.r.PathValue("id"))
	if err != nil {
		return answer{}, err
	}
	days := 0
	if text := strings.TrimSpace(v.form("expire_after_days")); text != "" {
		if days, err = strconv.Atoi(text); err != nil {
			return v.bucketPage("", model.Invalid("expire_after_days", "must be a number of days, or empty to keep files"))
		}
	}
	if err := v.confirm(b.Name); err != nil {
		return v.bucketPage("", err)
	}
	return v.changeBucket(engine.BucketChange{ExpireAfterDays: &days})
}

func (v *visit) changeBucket(change engine.BucketChange) (answer, error) {
	id := v.r.PathValue("id")
	if _, err := v.engine.BucketUpdate(v.call, id, change); err != nil {
		return v.bucketPage("", err)
	}
	return done("/buckets/"+id, "bucket_updated"), nil
}

// bucketDelete deletes a bucket, with files only where the person was told that
// it has some.
func (v *visit) bucketDelete() (answer, error) {
	b, err := v.engine.BucketGet(v.call, v.r.PathValue("id"))
	if err != nil {
		return answer{}, err
	}
	told, _ := strconv.ParseInt(v.form("files"), 10, 64) // what is no number told nothing
	if err = v.confirm(b.Name); err == nil {
		_, err = v.engine.BucketDelete(v.call, b.ID, told > 0)
	}
	if model.CodeOf(err) == model.CodeConflict && told == 0 {
		err = model.Errorf(model.CodeConflict, "the bucket was empty when you saw it, and has files now")
	}
	if err != nil {
		return v.bucketPage("", err)
	}
	return done("/buckets", "bucket_deleted"), nil
}
