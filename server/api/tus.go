package api

import (
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"holdfast/engine"
	"holdfast/engine/model"
	"holdfast/engine/objects"
	"holdfast/server/content"
	"holdfast/server/gate"
)

// UploadsPath begins the paths of resumable uploads. They are outside the API, whose responses are all in its
// envelope: tus clients require headers and other statuses.
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
	gate    *gate.Gate
	engine  *engine.Engine
	baseURL string
}

// NewUploads returns the handler of every path under UploadsPath. It uses the keys, scopes and audit log of the API.
func NewUploads(e *engine.Engine, opts Options) http.Handler {
	t := &tus{engine: e, baseURL: opts.BaseURL}
	t.gate = &gate.Gate{Engine: e, Log: opts.Log, Header: header(), WriteError: t.writeError, Known: opts.Known}
	t.gate.Header.Set("Tus-Resumable", tusVersion)
	return t
}

// ServeHTTP implements http.Handler.
func (t *tus) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	method := r.Method
	if override := r.Header.Get("X-HTTP-Method-Override"); method == http.MethodPost && override != "" {
		method = override
	}
	bucket, id, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, UploadsPath), "/")
	if method == http.MethodOptions {
		t.gate.Preflight(func(x *gate.Exchange) error { return t.options(x, bucket) }).ServeHTTP(w, r)
		return
	}
	allowOrigin(t.engine, w, r, bucket, tusHeaders...)
	action, serve := t.route(method, id)
	op := model.Operation{Action: action, Scope: model.ScopeStorageCreate}
	t.gate.Handler(op, func(x *gate.Exchange) error {
		if err := checkTus(x.Request.Header); err != nil {
			return err
		}
		return serve(x, bucket, id)
	}).ServeHTTP(w, r)
}

// tusHandler serves one request of the protocol, or returns an error.
type tusHandler func(x *gate.Exchange, bucket, id string) error

func (t *tus) route(method, id string) (model.Action, tusHandler) {
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
	return model.ActionUnknown, func(*gate.Exchange, string, string) error {
		return model.Errorf(model.CodeNotFound, "there is no such upload: POST %s{bucket} makes one", UploadsPath)
	}
}

// errTusVersion means that the client uses another version.
var errTusVersion = errors.New("another version of tus")

// checkTus checks the headers of every request except OPTIONS.
func checkTus(header http.Header) error {
	if header.Get("Tus-Resumable") != tusVersion {
		return &model.Error{Code: model.CodeValidation, Message: "Tus-Resumable: must be " + tusVersion, Err: errTusVersion}
	}
	if err := checkHeaders(header); err != nil {
		return err
	}
	return refuseHeaders(header, "is not supported for resumable uploads, so nothing was done: leave it out, or send the object in one request",
		"X-Checksum-Sha256", "X-Checksum-Crc32c", "Upload-Checksum", "Upload-Concat", gate.IdempotencyHeader)
}

// tusHeaders are the headers of responses that clients in pages of other origins read.
var tusHeaders = slices.Concat(exposedHeaders, []string{
	"Location", "Tus-Extension", "Tus-Max-Size", "Tus-Resumable", "Tus-Version", "Upload-Expires", "Upload-Length", "Upload-Metadata", "Upload-Offset",
})

// options describes the server's capabilities, and answers preflights. It needs no key.
func (t *tus) options(x *gate.Exchange, bucket string) error {
	header := x.Header()
	if content.IsPreflight(x.Request) {
		content.Preflight(header, rulesOf(t.engine, bucket), x.Request)
	}
	header.Set("Tus-Version", tusVersion)
	header.Set("Tus-Extension", tusExtensions)
	header.Set("Tus-Max-Size", strconv.FormatInt(t.engine.Objects.MaxObjectBytes(), 10))
	return empty(x, http.StatusNoContent)
}

func (t *tus) create(x *gate.Exchange, bucket, _ string) error {
	header := x.Request.Header
	in, err := newUpload(header)
	if err != nil {
		return err
	}
	in.Bucket = bucket
	u, err := t.engine.Objects.UploadCreate(x.Request.Context(), x.Call, in)
	if err != nil {
		return err
	}
	x.Header().Set("Location", t.baseURL+UploadsPath+u.Bucket+"/"+u.ID)
	if sent := header.Get("Content-Type") == tusBody; sent || u.Length == 0 {
		body := io.Reader(http.NoBody)
		if sent {
			body = x.StreamBody()
		}
		call := x.NextCall(model.ActionUploadAppend)
		if u, err = t.engine.Objects.UploadAppend(x.Request.Context(), call, bucket, u.ID, 0, body); err != nil {
			return err
		}
	}
	describeUpload(x.Header(), u)
	return empty(x, http.StatusCreated)
}

// newUpload parses the headers of a creation.
func newUpload(header http.Header) (in objects.NewUpload, err error) {
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
	if in.Tags, err = model.ParseObjectTags("Upload-Metadata tags", metadata["tags"]); err != nil {
		return in, err
	}
	if in.Attributes, err = uploadAttributes(header, metadata); err != nil {
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

// uploadProperty begins the names in Upload-Metadata that are stored as the user's metadata.
const uploadProperty = "meta-"

// uploadAttributes returns what Upload-Metadata stores with the object. It rejects the headers that do so for uploads in
// one request.
func uploadAttributes(header http.Header, metadata map[string]string) (*model.Attributes, error) {
	a := model.Attributes{CacheControl: metadata["cache_control"], ContentDisposition: metadata["content_disposition"]}
	for name, value := range metadata {
		name, ok := strings.CutPrefix(strings.ToLower(name), uploadProperty)
		if !ok {
			continue
		}
		if _, twice := a.Metadata[name]; twice {
			return nil, model.Invalid("Upload-Metadata", "has %s%s twice", uploadProperty, showName(name))
		}
		if a.Metadata == nil {
			a.Metadata = map[string]string{}
		}
		a.Metadata[name] = value
	}
	for name := range header {
		if name == "X-Object-Tags" || strings.HasPrefix(name, metadataHeader) {
			return nil, model.Invalid(showName(name), "is not read here: Upload-Metadata has tags and %sNAME", uploadProperty)
		}
	}
	return storedAttributes(a, "Upload-Metadata "+uploadProperty+"*", "Upload-Metadata cache_control", "Upload-Metadata content_disposition")
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

// maxUploadMetadata is the maximum size of an upload's metadata in bytes.
const maxUploadMetadata = 16 << 10

// uploadMetadata parses pairs of a name and a base64 value.
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

func (t *tus) head(x *gate.Exchange, bucket, id string) error {
	u, err := t.engine.Objects.UploadGet(x.Request.Context(), x.Call, bucket, id)
	if err != nil {
		return err
	}
	describeUpload(x.Header(), u)
	x.Header().Set("Upload-Length", strconv.FormatInt(u.Length, 10))
	if u.Metadata != "" {
		x.Header().Set("Upload-Metadata", u.Metadata)
	}
	return empty(x, http.StatusOK)
}

// errTusBody means that the body of a PATCH has another content type.
var errTusBody = errors.New("another content type")

func (t *tus) patch(x *gate.Exchange, bucket, id string) error {
	if x.Request.Header.Get("Content-Type") != tusBody {
		return &model.Error{Code: model.CodeValidation, Message: "Content-Type: must be " + tusBody, Err: errTusBody}
	}
	offset, err := headerNumber(x.Request.Header, "Upload-Offset")
	if err != nil {
		return err
	}
	u, err := t.engine.Objects.UploadAppend(x.Request.Context(), x.Call, bucket, id, offset, x.StreamBody())
	if err != nil {
		return err
	}
	describeUpload(x.Header(), u)
	return empty(x, http.StatusNoContent)
}

func (t *tus) delete(x *gate.Exchange, bucket, id string) error {
	if err := t.engine.Objects.UploadDelete(x.Call, bucket, id); err != nil {
		return err
	}
	return empty(x, http.StatusNoContent)
}

func describeUpload(header http.Header, u model.Upload) {
	header.Set("Upload-Offset", strconv.FormatInt(u.Offset, 10))
	if !u.Complete {
		header.Set("Upload-Expires", u.ExpiresAt.UTC().Format(http.TimeFormat))
	}
}

// writeError writes an error in the API's envelope, with the statuses of tus.
func (t *tus) writeError(x *gate.Exchange, public *model.Error) {
	status := StatusOfError(public)
	switch {
	case errors.Is(public, errTusVersion):
		status = http.StatusPreconditionFailed
		x.Header().Set("Tus-Version", tusVersion)
	case errors.Is(public, errTusBody):
		status = http.StatusUnsupportedMediaType
	case errors.Is(public, objects.ErrUploadBusy):
		status = http.StatusLocked
	}
	x.WriteHeader(status)
	_ = writeJSON(x, newFailure(x, public))
}

// empty responds without a body.
func empty(x *gate.Exchange, status int) error {
	x.Header().Del("Content-Type")
	x.WriteHeader(status)
	return nil
}
