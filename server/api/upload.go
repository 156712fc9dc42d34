package api

import (
	"cmp"
	"context"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"holdfast/engine/model"
	"holdfast/engine/objects"
	"holdfast/server/api/wire"
	"holdfast/server/content"
	"holdfast/server/gate"
)

// uploadInput is an upload without its body.
type uploadInput struct {
	ObjectQueryInput
	IfNoneMatch  string `header:"If-None-Match" pattern:"^[*]$" patternDescription:"*, which refuses to replace an object" doc:"* refuses to replace an object."`
	SHA256       string `header:"X-Checksum-SHA256" pattern:"^[A-Za-z0-9+/]{43}=$" patternDescription:"the checksum's 32 bytes in base64" doc:"Base64 of the SHA-256 the body must have."`
	CRC32C       string `header:"X-Checksum-CRC32C" pattern:"^[A-Za-z0-9+/]{6}==$" patternDescription:"the checksum's 4 bytes in base64" doc:"Base64 of the big-endian CRC-32C the body must have."`
	Tags         string `header:"X-Object-Tags" maxLength:"8192" doc:"Tags in the form of a query: team=blue&stage=new. At most 10."`
	CacheControl string `header:"Cache-Control" maxLength:"1024" doc:"The Cache-Control of downloads."`
	Disposition  string `header:"Content-Disposition" maxLength:"1024" doc:"The Content-Disposition of downloads."`
}

// metadataHeader begins the names of the headers that are stored as the user's metadata.
const metadataHeader = "X-Object-Meta-"

// stored sets what the headers of a request store with its object.
func (in *uploadInput) stored(header http.Header, upload *objects.Upload) (err error) {
	a := model.Attributes{CacheControl: in.CacheControl, ContentDisposition: in.Disposition}
	for name, values := range header {
		if name, ok := strings.CutPrefix(name, metadataHeader); ok {
			if a.Metadata == nil {
				a.Metadata = map[string]string{}
			}
			a.Metadata[strings.ToLower(name)] = strings.Join(values, ",")
		}
	}
	if upload.Tags, err = model.ParseObjectTags("X-Object-Tags", in.Tags); err != nil {
		return err
	}
	stored, err := storedAttributes(a, metadataHeader+"*", "Cache-Control", "Content-Disposition")
	upload.Describe = func(o *model.Object) { o.Attributes = stored }
	return err
}

// storedAttributes checks what a client stores with an object, given its names of metadata, Cache-Control and
// Content-Disposition. It returns nil for nothing.
func storedAttributes(a model.Attributes, metadata, cacheControl, disposition string) (*model.Attributes, error) {
	if a.Metadata == nil && a.CacheControl == "" && a.ContentDisposition == "" {
		return nil, nil
	}
	return &a, cmp.Or(model.ValidateMetadata(metadata, a.Metadata),
		model.ValidateStoredHeader(cacheControl, a.CacheControl), model.ValidateStoredHeader(disposition, a.ContentDisposition))
}

func (h *handlers) objectUpload(ctx context.Context, call *model.Call, in *uploadInput) (wire.Object, error) {
	upload := objects.Upload{Bucket: in.ID, Key: in.Key, IfAbsent: in.IfNoneMatch != "", SHA256: in.SHA256, CRC32C: in.CRC32C}
	x := gate.Of(ctx)
	if err := in.stored(x.Request.Header, &upload); err != nil {
		return wire.Object{}, err
	}
	body := newIncoming(x)
	if err := body.describe(&upload); err != nil {
		return wire.Object{}, err
	}
	o, err := h.engine.Objects.ObjectUpload(ctx, call, upload)
	return h.newObject(o), err
}

// maxContentType is the maximum length of a media type in bytes.
const maxContentType = 255

// defaultContentType is the type of bodies without a Content-Type.
const defaultContentType = "application/octet-stream"

// mediaType checks a Content-Type and returns it in canonical form.
func mediaType(given string) (media, canonical string, err error) {
	if given == "" {
		return defaultContentType, defaultContentType, nil
	}
	media, parameters, err := mime.ParseMediaType(given)
	if err == nil {
		canonical = mime.FormatMediaType(media, parameters)
	}
	if err != nil || !strings.Contains(media, "/") || canonical == "" || len(canonical) > maxContentType {
		return "", "", model.Invalid("Content-Type", "must be a media type such as image/png, with at most %d bytes", maxContentType)
	}
	return media, canonical, nil
}

// incoming is the body of an upload being received.
type incoming struct {
	io.Reader
	x *gate.Exchange
}

func newIncoming(x *gate.Exchange) *incoming { return &incoming{x.StreamBody(), x} }

// formOverhead exceeds the size in bytes of a multipart body apart from its file.
const formOverhead = 2 * content.MaxFormFields

// multipartForm is a form that is being received.
type multipartForm struct {
	*multipart.Reader
	x    *gate.Exchange
	body *content.FormBody
}

// newMultipartForm returns the form in the body of a request. The caller must not read the body otherwise.
func newMultipartForm(x *gate.Exchange) (*multipartForm, error) {
	f := &multipartForm{x: x, body: content.NewFormBody(x.WholeBody(content.FormTimeout))}
	r := *x.Request
	r.Body = io.NopCloser(f.body)
	var err error
	if f.Reader, err = r.MultipartReader(); err != nil {
		return nil, model.Invalid("Content-Type", "must be multipart/form-data with a boundary")
	}
	return f, nil
}

// file returns the bytes of a part, which must be the last.
func (f *multipartForm) file(part *multipart.Part) io.Reader {
	f.body.BeginFile(f.x.StreamBody())
	return &partBody{part: part, form: f}
}

// describe sets the upload's body, type and length. For the first two, a multipart body must be opened.
func (b *incoming) describe(upload *objects.Upload) error {
	length := b.x.Request.ContentLength
	media, canonical, err := mediaType(b.x.Request.Header.Get("Content-Type"))
	if media == "multipart/form-data" {
		upload.Open, upload.Length, upload.Least = b.open, -1, max(length-formOverhead, 0)
	} else {
		upload.Body, upload.ContentType, upload.Length = b, canonical, length
	}
	return err
}

// open reads a multipart body up to its file.
func (b *incoming) open(upload *objects.Upload) (err error) {
	upload.Body, upload.ContentType, err = b.onlyPart()
	return err
}

// onlyPart returns the only file of a multipart body, without decoding any Content-Transfer-Encoding (RFC 7578,
// 4.7), and its type.
func (b *incoming) onlyPart() (io.Reader, string, error) {
	form, err := newMultipartForm(b.x)
	if err != nil {
		return nil, "", err
	}
	part, err := form.NextRawPart()
	switch {
	case err == io.EOF:
		return nil, "", onePartOnly()
	case err != nil:
		return nil, "", malformedMultipart(err)
	case part.FileName() == "":
		return nil, "", onePartOnly()
	}
	_, canonical, err := mediaType(part.Header.Get("Content-Type"))
	return form.file(part), canonical, err
}

func onePartOnly() error {
	return model.Invalid("body", "multipart/form-data must have exactly one part, and that a file")
}

func malformedMultipart(err error) error {
	if public, ok := errors.AsType[*model.Error](err); ok {
		return public
	}
	if errors.Is(err, content.ErrFormTooLarge) {
		return model.Invalid("body", "multipart/form-data must have at most %d bytes before its file, and nothing after it", content.MaxFormFields)
	}
	return &model.Error{Code: model.CodeValidation, Message: "body: is not well-formed multipart/form-data, or ended early", Err: err}
}

// partBody reads a part, and at its end checks that there is no other: the object is published only after that. (A
// truncated body also causes an io.EOF, but a wrapped one: only the bare one means the end.)
type partBody struct {
	part *multipart.Part
	form *multipartForm
}

// Read implements io.Reader.
func (p *partBody) Read(data []byte) (int, error) {
	n, err := p.part.Read(data)
	if err == nil {
		return n, nil
	}
	if err != io.EOF {
		return n, malformedMultipart(err)
	}
	p.form.body.EndFile()
	switch _, err := p.form.NextRawPart(); {
	case err == io.EOF:
		return n, io.EOF
	case err != nil:
		return n, malformedMultipart(err)
	default:
		return n, onePartOnly()
	}
}

// uploadForm is the schema of an upload by a form.
const uploadForm = "UploadForm"

// uploadBody describes the body of an upload. Many generators do not support media type ranges, so the description
// lists one type.
func uploadBody(schemas huma.Registry) *huma.RequestBody {
	file := func() *huma.Schema { return &huma.Schema{Type: huma.TypeString, Format: "binary"} }
	schemas.Map()[uploadForm] = &huma.Schema{
		Type: huma.TypeObject, Description: "A form with exactly one file. The name of its field does not matter.",
		Properties: map[string]*huma.Schema{"file": file()}, Required: []string{"file"}, MaxProperties: new(1),
	}
	return &huma.RequestBody{
		Description: "The bytes of the object, or a form with exactly one file. The object gets the Content-Type of the request or of the form's file; " +
			"any will do, not only the one named here. Headers X-Object-Meta-NAME are stored as its metadata, by NAME in lower case.",
		Content: map[string]*huma.MediaType{
			defaultContentType:    {Schema: file()},
			"multipart/form-data": {Schema: &huma.Schema{Ref: schemaPrefix + uploadForm}},
		},
	}
}
