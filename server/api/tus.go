package api

import (
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"holdfast/engine"
	"holdfast/engine/model"
)

// UploadsPath begins the paths of resumable uploads. They are outside the API,
// whose answers are all in its envelope: tus clients want headers and other
// statuses.
const UploadsPath = "/uploads/"

const (
	tusVersion    = "1.0.0"
	tusExtensions = "creation,creation-with-upload,expiration,termination"
	tusBody       = "application/offset+octet-stream"
)

// tus serves resumable uploads by the protocol tus 1.0 (https://tus.io):
//
//	POST   /uploads/{bucket}        make one; Upload-Metadata has its key
//	HEAD   /uploads/{bucket}/{id}   how far it is
//	PATCH  /uploads/{bucket}/{id}   go on with it
//	DELETE /uploads/{bucket}/{id}   give it up
type tus struct {
	gate    *gate
	engine  *engine.Engine
	baseURL string
}

// NewUploads returns the handler of every path under UploadsPath. Keys, scopes
// and the audit log are those of the API.
func NewUploads(e *engine.Engine, opts Options) http.Handler {
	return &tus{gate: &gate{engine: e, log: opts.Log, known: opts.Known}, engine: e, baseURL: opts.BaseURL}
}

// ServeHTTP implements http.Handler.
func (t *tus) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	method := r.Method
	if override := r.Header.Get("X-HTTP-Method-Override"); method == http.MethodPost && override != "" {
		method = override
	}
	bucket, id, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, UploadsPath), "/")
	action, serve := t.route(method, id)
	x := t.gate.begin(w, r, model.Operation{Action: action, Scope: model.ScopeStorageCreate, Resource: model.ResourceUpload})
	defer x.end()
	header := w.Header()
	header.Set("Tus-Resumable", tusVersion)
	if method == http.MethodOptions {
		t.options(x)
		return
	}
	if err := t.admit(x); err != nil {
		t.refuse(x, err)
		return
	}
	if err := serve(x, bucket, id); err != nil {
		t.refuse(x, err)
	}
}

func (t *tus) route(method, id string) (model.Action, func(x *exchange, bucket, id string) error) {
	switch {
	case method == http.MethodPost && id == "":
		return model.ActionUploadCreate, t.create
	case method == http.MethodHead && id != "":
		return model.ActionUploadGet, t.head
	case method == http.MethodPatch && id != "":
		return model.ActionUploadAppend, t.patch
	case method == http.MethodDelete && id != "":
		return model.ActionUploadDelete, t.delete
	}
	return model.ActionUnknown, func(*exchange, string, string) error {
		return model.Errorf(model.CodeNotFound, "there is no such upload: POST %s{bucket} makes one", UploadsPath)
	}
}

// errTusVersion is answered to clients of another version.
var errTusVersion = errors.New("another version of tus")

func (t *tus) admit(x *exchange) error {
	if err := x.identify(); err != nil {
		return err
	}
	if err := t.engine.Authorize(x.call); err != nil {
		return err
	}
	if x.r.Header.Get("Tus-Resumable") != tusVersion {
		return &model.Error{Code: model.CodeValidation, Message: "Tus-Resumable: must be " + tusVersion, Err: errTusVersion}
	}
	if err := checkHeaders(x.r.Header); err != nil {
		return err
	}
	return refuseHeaders(x.r.Header, "is not heeded for resumable uploads, so nothing was done: leave it out, or send the object in one request",
		"X-Checksum-Sha256", "X-Checksum-Crc32c", "Upload-Checksum", "Upload-Concat", onceHeader)
}

// options says what the server can do; it needs no key.
func (t *tus) options(x *exchange) {
	header := x.w.Header()
	header.Set("Tus-Version", tusVersion)
	header.Set("Tus-Extension", tusExtensions)
	header.Set("Tus-Max-Size", strconv.FormatInt(t.engine.MaxObjectBytes(), 10))
	x.empty(http.StatusNoContent)
}

func (t *tus) create(x *exchange, bucket, _ string) error {
	in, err := newUpload(x.r.Header)
	if err != nil {
		return err
	}
	in.Bucket = bucket
	u, err := t.engine.UploadCreate(x.r.Context(), x.call, in)
	if err != nil {
		return err
	}
	x.w.Header().Set("Location", t.baseURL+UploadsPath+u.Bucket+"/"+u.ID)
	if sent := x.r.Header.Get("Content-Type") == tusBody; sent || u.Length == 0 {
		more := *x.call // one request, two acts: each has its audit entry
		more.Audited, more.Details = false, nil
		more.Operation.Action = model.ActionUploadAppend
		x.call = &more
		if u, err = t.engine.UploadAppend(x.r.Context(), x.call, bucket, u.ID, 0, t.body(x, sent)); err != nil {
			return err
		}
	}
	t.describe(x, u)
	x.empty(http.StatusCreated)
	return nil
}

func (t *tus) body(x *exchange, sent bool) io.Reader {
	if !sent {
		return strings.NewReader("")
	}
	return &incoming{x: x, body: x.r.Body}
}

// newUpload reads the headers of a creation.
func newUpload(header http.Header) (in engine.NewUpload, err error) {
	if in.Length, err = headerNumber(header, "Upload-Length"); err != nil {
		return in, err
	}
	in.Metadata = header.Get("Upload-Metadata")
	metadata, err := uploadMetadata(in.Metadata)
	if err != nil {
		return in, err
	}
	in.Key = firstOf(metadata, "key", "filename")
	if in.Key == "" {
		return in, model.Invalid("Upload-Metadata", "must have a key: the object's, in base64")
	}
	if _, in.ContentType, err = mediaType(firstOf(metadata, "content_type", "filetype")); err != nil {
		return in, err
	}
	switch condition := header.Get("If-None-Match"); condition {
	case "", "*":
		in.IfAbsent = condition == "*"
	default:
		return in, model.Invalid("If-None-Match", "must be * or left out")
	}
	return in, nil
}

func firstOf(metadata map[string]string, names ...string) string {
	for _, name := range names {
		if value := metadata[name]; value != "" {
			return value
		}
	}
	return ""
}

func headerNumber(header http.Header, name string) (int64, error) {
	n, err := strconv.ParseInt(header.Get(name), 10, 64)
	if err != nil || n < 0 {
		return 0, model.Invalid(name, "must be a number of bytes, 0 or more")
	}
	return n, nil
}

// maxUploadMetadata bounds what is kept of an upload's metadata, in bytes.
const maxUploadMetadata = 4 << 10

// uploadMetadata reads pairs of a name and a value in base64.
func uploadMetadata(text string) (map[string]string, error) {
	if len(text) > maxUploadMetadata {
		return nil, model.Invalid("Upload-Metadata", "must have at most %d bytes", maxUploadMetadata)
	}
	metadata := map[string]string{}
	for pair := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(pair), " ")
		if name == "" {
			continue
		}
		raw, err := base64.StdEncoding.DecodeString(value)
		if _, twice := metadata[name]; err != nil || twice {
			return nil, model.Invalid("Upload-Metadata", "must be names, each once, with values in base64: key YS9i,content_type aW1hZ2UvcG5n")
		}
		metadata[name] = string(raw)
	}
	return metadata, nil
}

func (t *tus) head(x *exchange, bucket, id string) error {
	u, err := t.engine.UploadGet(x.r.Context(), x.call, bucket, id)
	if err != nil {
		return err
	}
	t.describe(x, u)
	x.w.Header().Set("Upload-Length", strconv.FormatInt(u.Length, 10))
	if u.Metadata != "" {
		x.w.Header().Set("Upload-Metadata", u.Metadata)
	}
	x.empty(http.StatusOK)
	return nil
}

// errTusBody is answered to a PATCH whose body is something else.
var errTusBody = errors.New("another content type")

func (t *tus) patch(x *exchange, bucket, id string) error {
	if x.r.Header.Get("Content-Type") != tusBody {
		return &model.Error{Code: model.CodeValidation, Message: "Content-Type: must be " + tusBody, Err: errTusBody}
	}
	offset, err := headerNumber(x.r.Header, "Upload-Offset")
	if err != nil {
		return err
	}
	u, err := t.engine.UploadAppend(x.r.Context(), x.call, bucket, id, offset, t.body(x, true))
	if err != nil {
		return err
	}
	t.describe(x, u)
	x.empty(http.StatusNoContent)
	return nil
}

func (t *tus) delete(x *exchange, bucket, id string) error {
	if err := t.engine.UploadDelete(x.call, bucket, id); err != nil {
		return err
	}
	x.empty(http.StatusNoContent)
	return nil
}

func (t *tus) describe(x *exchange, u model.Upload) {
	header := x.w.Header()
	header.Set("Upload-Offset", strconv.FormatInt(u.Offset, 10))
	if !u.Complete {
		header.Set("Upload-Expires", u.ExpiresAt.UTC().Format(http.TimeFormat))
	}
}

// refuse answers err in the API's envelope, with the statuses that tus names.
func (t *tus) refuse(x *exchange, err error) {
	failure := x.fail(err)
	status := failure.GetStatus()
	switch {
	case errors.Is(err, errTusVersion):
		status = http.StatusPreconditionFailed
		x.w.Header().Set("Tus-Version", tusVersion)
	case errors.Is(err, errTusBody):
		status = http.StatusUnsupportedMediaType
	case errors.Is(err, engine.ErrUploadBusy):
		status = http.StatusLocked
	case errors.Is(err, engine.ErrTooLarge):
		status = http.StatusRequestEntityTooLarge
	}
	x.SetStatus(status)
	_ = writeJSON(x, failure)
}

// empty answers without a body.
func (x *exchange) empty(status int) {
	x.status, x.began = status, true
	x.w.Header().Del("Content-Type")
	x.w.WriteHeader(status)
}
