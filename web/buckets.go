package web

import (
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"path"
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
	if data.Projects, err = v.allProjects(); err != nil {
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

func (v *visit) bucketCreate() (answer, error) {
	data := bucketsData{Project: v.form("project"), Name: v.form("name"), Public: v.checked("public")}
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
	engine.List[engine.FolderEntry]
	PublicURL string
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
	data := bucketData{Prefix: prefix, Crumbs: crumbs(prefix)}
	var err error
	data.Bucket, data.List, err = v.engine.Folder(v.call, v.r.PathValue("id"), prefix, v.page())
	if err != nil {
		return answer{}, err
	}
	if data.Bucket.Public {
		data.PublicURL = v.opts.BaseURL + engine.ObjectPath + data.Bucket.ID + "/"
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
			all = append(all, crumb{prefix[last:i], prefix[:i+1]})
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

// upload stores the body under the key of the query. The page's script sends
// files like this, one by one, to show how far each is.
func (v *visit) upload() (answer, error) {
	key := v.r.URL.Query().Get("key")
	if err := v.store(key, v.r.Header.Get("Content-Type"), v.r.Body, v.r.ContentLength); err != nil {
		http.Error(v.w, sentence(model.PublicMessage(err)), v.status(err))
		v.logInternal(err)
		v.engine.Finish(v.call, err)
		return answer{}, nil
	}
	v.w.WriteHeader(http.StatusNoContent)
	return answer{}, nil
}

func (v *visit) logInternal(err error) {
	if model.CodeOf(err) == model.CodeInternal {
		v.opts.Log.Error("upload failed", "request_id", v.call.RequestID, "error", err)
	}
}

// uploadForm stores the file of a form, for browsers without scripts. The
// field prefix comes before the file.
func (v *visit) uploadForm() (answer, error) {
	parts, err := v.r.MultipartReader()
	if err != nil {
		return answer{}, model.Invalid("form", "must be multipart/form-data with a file")
	}
	prefix := ""
	for {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return v.bucketPage(prefix, model.Invalid("file", "choose a file first"))
		}
		if err != nil {
			return answer{}, model.Invalid("form", "could not be read to its end; try again")
		}
		if part.FormName() == "prefix" {
			text, err := io.ReadAll(io.LimitReader(part, model.MaxObjectKey+1))
			if err != nil {
				return answer{}, model.Invalid("form", "could not be read to its end; try again")
			}
			prefix = string(text)
		} else if part.FileName() != "" {
			return v.storePart(prefix, part)
		}
	}
}

func (v *visit) storePart(prefix string, part *multipart.Part) (answer, error) {
	name := path.Base(strings.ReplaceAll(part.FileName(), `\`, "/"))
	if err := v.store(prefix+name, part.Header.Get("Content-Type"), part, -1); err != nil {
		return v.bucketPage(prefix, err)
	}
	return v.folderPath(prefix, "uploaded"), nil
}

// uploadIdle is how long an upload may stand still.
const uploadIdle = time.Minute

func (v *visit) store(key, contentType string, body io.Reader, length int64) error {
	media, parameters, err := mime.ParseMediaType(contentType)
	if err == nil {
		contentType = mime.FormatMediaType(media, parameters)
	}
	if err != nil || contentType == "" || len(contentType) > 255 || !strings.Contains(media, "/") {
		contentType = "application/octet-stream"
	}
	_, err = v.engine.ObjectUpload(v.r.Context(), v.call, engine.Upload{
		Bucket: v.r.PathValue("id"), Key: key, ContentType: contentType, Body: &patient{v, body}, Length: length,
	})
	return err
}

// patient reads a body for as long as it keeps coming.
type patient struct {
	v    *visit
	body io.Reader
}

// Read implements io.Reader. What keeps the body from being read is the
// client's error, not the disk's.
func (p *patient) Read(data []byte) (int, error) {
	_ = http.NewResponseController(p.v.w).SetReadDeadline(time.Now().Add(uploadIdle)) // a test's recorder has none
	n, err := p.body.Read(data)
	if err != nil && err != io.EOF {
		err = &model.Error{Code: model.CodeValidation, Message: "file: could not be read to its end; try again", Err: err}
	}
	return n, err
}

// download leads to the object's bytes, at a URL that works for a while.
func (v *visit) download() (answer, error) {
	object, err := v.engine.ObjectGet(v.call, v.r.PathValue("id"), v.r.URL.Query().Get("key"))
	return answer{redirect: object.DownloadPath}, err
}

func (v *visit) objectDelete() (answer, error) {
	prefix := v.form("prefix")
	if err := v.engine.ObjectDelete(v.call, v.r.PathValue("id"), v.form("key")); err != nil {
		return v.bucketPage(prefix, err)
	}
	return v.folderPath(prefix, "object_deleted"), nil
}

func (v *visit) bucketDelete() (answer, error) {
	b, err := v.engine.BucketGet(v.call, v.r.PathValue("id"))
	if err != nil {
		return answer{}, err
	}
	if err = v.confirm(b.Name); err == nil {
		err = v.engine.BucketDelete(v.call, b.ID, b.ObjectCount > 0)
	}
	if err != nil {
		return v.bucketPage("", err)
	}
	return done("/buckets", "bucket_deleted"), nil
}
