package api

import (
	"cmp"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"

	"holdfast/engine"
	"holdfast/engine/model"
	"holdfast/engine/objects"
	"holdfast/server/api/wire"
	"holdfast/server/content"
	"holdfast/server/gate"
)

// maxFormField is the maximum size of a field of a form in bytes.
const maxFormField = 8 << 10

// links serves uploads by links, which have the authority of the key or person that made them:
//
//	PUT  /objects/{bucket}/{key}?link=…   the bytes
//	POST /objects/{bucket}?link=…         an HTML form
type links struct {
	engine *engine.Engine
	gate   *gate.Gate
	view   *handlers // of what was stored
}

// NewLinks returns the handler of uploads by links.
func NewLinks(e *engine.Engine, opts Options) http.Handler {
	l := &links{engine: e, view: &handlers{objectsURL: cmp.Or(opts.ObjectsURL, opts.BaseURL)}}
	l.gate = &gate.Gate{Engine: e, Log: opts.Log, Header: header(), Authenticate: l.authenticate, WriteError: writeError, Answered: opts.Answered}
	return l
}

// IsUploadLink reports whether a request below objects.ObjectPath is an upload by a link.
func IsUploadLink(r *http.Request) bool {
	return (r.Method == http.MethodPut || r.Method == http.MethodPost) && r.URL.Query().Has(objects.LinkParameter)
}

// authenticate makes the maker of the link the caller.
func (l *links) authenticate(x *gate.Exchange) error {
	if err := l.engine.Core.ByLink(x.Call); err != nil {
		return err
	}
	link, err := l.linkOf(x.Request)
	if err != nil {
		return err
	}
	return l.engine.Core.ActFor(x.Call, link.Organization, link.Maker)
}

func (l *links) linkOf(r *http.Request) (objects.UploadLink, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil || len(values) != 1 || len(values[objects.LinkParameter]) != 1 {
		return objects.UploadLink{}, model.Errorf(model.CodeForbidden, "the link must be used as it was made: its query was changed")
	}
	link, err := l.engine.Objects.UploadLinkOf(values.Get(objects.LinkParameter))
	if err == nil && link.Method != r.Method {
		err = model.Errorf(model.CodeForbidden, "the link is for %s", link.Method)
	}
	return link, err
}

// ServeHTTP implements http.Handler.
func (l *links) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, objects.ObjectPath), "/")
	allowOrigin(l.engine, w, r, bucket, exposedHeaders...)
	l.gate.Handler(model.OperationFor(model.ActionObjectUpload), func(x *gate.Exchange) error {
		if err := checkHeaders(x.Request.Header); err != nil {
			return err
		}
		link, err := l.linkOf(x.Request)
		if err != nil {
			return err
		}
		if link.Method == objects.LinkByForm {
			return l.form(x, link, bucket, key)
		}
		return l.put(x, link, bucket, key)
	}).ServeHTTP(w, r)
}

func (l *links) put(x *gate.Exchange, link objects.UploadLink, bucket, key string) error {
	_, canonical, err := mediaType(x.Request.Header.Get("Content-Type"))
	if err != nil {
		return err
	}
	in, err := link.Upload(bucket, key, canonical)
	if err != nil {
		return err
	}
	in.IfAbsent = in.IfAbsent || x.Request.Header.Get("If-None-Match") == "*"
	in.Body, in.Length = newIncoming(x), x.Request.ContentLength
	return l.store(x, in)
}

func (l *links) store(x *gate.Exchange, in objects.Upload) error {
	o, err := l.engine.Objects.ObjectUpload(x.Request.Context(), x.Call, in)
	if err != nil {
		return err
	}
	return writeJSON(x, wire.Envelope[wire.Object, wire.Meta]{Data: l.view.newObject(o), Meta: metaOf(x.Call)})
}

// form stores the file of an HTML form. Its other fields come first.
func (l *links) form(x *gate.Exchange, link objects.UploadLink, bucket, rest string) error {
	if rest != "" {
		return model.Errorf(model.CodeForbidden, "the link must be used as it was made: its path was changed")
	}
	parts, err := newMultipartForm(x)
	if err != nil {
		return err
	}
	fields := map[string]string{}
	for {
		part, err := parts.NextRawPart()
		switch {
		case err == io.EOF:
			return model.Invalid("file", "is missing: the file must be the last field of the form")
		case err != nil:
			return malformedMultipart(err)
		case part.FormName() == "file":
			return l.file(parts, link, bucket, fields, part)
		}
		if err := readField(fields, part); err != nil {
			return err
		}
	}
}

func readField(fields map[string]string, part *multipart.Part) error {
	name := part.FormName()
	if name != "key" && name != "Content-Type" {
		return model.Invalid(showName(name), "is not a field here; the fields are Content-Type, file, key")
	}
	if _, twice := fields[name]; twice {
		return model.Invalid(name, "is given twice")
	}
	value, err := io.ReadAll(io.LimitReader(part, maxFormField+1))
	if err != nil {
		return malformedMultipart(err)
	}
	if len(value) > maxFormField {
		return model.Invalid(name, "must have at most %d bytes", maxFormField)
	}
	fields[name] = string(value)
	return nil
}

// file stores the file of a form.
func (l *links) file(form *multipartForm, link objects.UploadLink, bucket string, fields map[string]string, part *multipart.Part) error {
	given := fields["Content-Type"]
	if given == "" {
		given = part.Header.Get("Content-Type")
	}
	_, canonical, err := mediaType(given)
	if err != nil {
		return err
	}
	key, ok := fields["key"]
	switch {
	case !ok && link.Key != "":
		key = link.Key
	case !ok:
		key = link.Prefix + content.FileNameVariable
	}
	key, ok = content.WithFileName(key, part)
	if !ok {
		return model.Invalid("file", "must have a name")
	}
	in, err := link.Upload(bucket, key, canonical)
	if err != nil {
		return err
	}
	in.Body, in.Length, in.Least = form.file(part), -1, max(form.x.Request.ContentLength-formOverhead, 0)
	return l.store(form.x, in)
}
