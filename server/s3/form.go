package s3

import (
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"

	"holdfast/engine/model"
	"holdfast/server/content"
	"holdfast/server/gate"
	"holdfast/server/s3/sigv4"
)

// boundarySize is the maximum size of a boundary in bytes (RFC 2046, 5.1.1).
const boundarySize = 70

// form is an HTML form that uploads a file to a bucket. Its other fields come first, and what follows the file is
// ignored.
type form struct {
	fields map[string]string // by their names in lower case
	file   *multipart.Part
}

// isForm reports whether a request uploads an HTML form. Its authorization is in the form.
func isForm(r *http.Request, q *request) bool {
	return r.Method == http.MethodPost && q.bucket != "" && q.key == "" && r.URL.RawQuery == "" && !sigv4.IsSigned(r)
}

// readForm reads a form up to its file.
func readForm(x *gate.Exchange) (*form, error) {
	media, parameters, err := mime.ParseMediaType(x.Request.Header.Get("Content-Type"))
	if err != nil || media != "multipart/form-data" {
		return nil, failedCondition("Bucket POST must be of the enclosure-type multipart/form-data")
	}
	boundary := parameters["boundary"]
	if boundary == "" || len(boundary) > boundarySize || x.Request.Body == nil {
		return nil, malformedForm()
	}
	f := &form{fields: map[string]string{}}
	body := content.NewFormBody(x.WholeBody(content.FormTimeout)) // the request is not authenticated yet
	parts := multipart.NewReader(body, boundary)
	for {
		part, err := parts.NextRawPart()
		if err == io.EOF {
			return nil, fail("InvalidArgument", "POST requires exactly one file upload per request.").with("ArgumentName", "file").with("ArgumentValue", "0")
		}
		if err != nil {
			return nil, formError(err)
		}
		name := strings.ToLower(part.FormName())
		if name == "file" {
			body.BeginFile(x.StreamBody())
			f.file = part
			return f, nil
		}
		value, err := io.ReadAll(part)
		if err != nil {
			return nil, formError(err)
		}
		if _, twice := f.fields[name]; twice || name == "" {
			return nil, invalidArgument("field", name, "Each field of the form must have a name, and be there once: %q", name)
		}
		f.fields[name] = string(value)
	}
}

func malformedForm() error {
	return fail("MalformedPOSTRequest", "The body of your POST request is not well-formed multipart/form-data.")
}

// formError returns the client's view of an error from reading a form.
func formError(err error) error {
	if errors.Is(err, content.ErrFormTooLarge) {
		return fail("MaxPostPreDataLengthExceededError", "Your POST request fields preceding the upload file were too large.")
	}
	if public, ok := errors.AsType[*model.Error](err); ok {
		return public
	}
	return malformedForm()
}

// headers returns the fields that stand for headers of a PUT.
func (f *form) headers() http.Header {
	h := http.Header{}
	for name, value := range f.fields {
		switch name {
		case "cache-control", "content-disposition", "content-encoding", "content-language", "content-type", "expires":
			h.Set(name, value)
		case "acl":
			h.Set("X-Amz-Acl", value)
		default:
			if strings.HasPrefix(name, "x-amz-") {
				h.Set(name, value)
			}
		}
	}
	return h
}

// checkMetadata checks the fields with user metadata, whose names net/http has not checked as it does those of headers.
func (f *form) checkMetadata() error {
	metadata := map[string]string{}
	for name, value := range f.fields {
		if name, ok := strings.CutPrefix(name, strings.ToLower(metaPrefix)); ok {
			metadata[name] = value
		}
	}
	if err := checkMetadataSize(metadata); err != nil {
		return err
	}
	return model.ValidateMetadata("x-amz-meta-*", metadata)
}

// key returns the key of the object that the form stores.
func (f *form) key() (string, error) {
	key, ok := f.fields["key"]
	if !ok {
		return "", refused(sigv4.MissingField("key"))
	}
	key, ok = content.WithFileName(key, f.file)
	if !ok {
		return "", invalidArgument("file", "", "The file must have a name, which the key has a place for")
	}
	return key, nil
}

// bounded is the file of a form whose policy bounds its size in bytes. Least is checked at its end.
type bounded struct {
	source      io.Reader
	least, most int64 // most is -1 for none
	read        int64
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.source.Read(p)
	b.read += int64(n)
	switch {
	case b.most >= 0 && b.read > b.most:
		rest, _ := io.Copy(io.Discard, io.LimitReader(b.source, content.MaxFormFields)) // a small file's size can be told
		return 0, fail("EntityTooLarge", "Your proposed upload exceeds the maximum allowed object size.").
			with("ProposedSize", decimal(b.read+rest)).with("MaxSizeAllowed", decimal(b.most))
	case err == io.EOF && b.read < b.least:
		return 0, fail("EntityTooSmall", "Your proposed upload is smaller than the minimum allowed size").
			with("ProposedSize", decimal(b.read)).with("MinSizeAllowed", decimal(b.least))
	case err != nil && err != io.EOF:
		return n, formError(err)
	}
	return n, err
}
