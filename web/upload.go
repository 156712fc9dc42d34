package web

import (
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"path"
	"strings"
	"time"

	"holdfast/engine/model"
	"holdfast/engine/objects"
	"holdfast/server/content"
)

// upload stores the body under the key in the query. The page's script sends
// files this way, one by one, to show the progress of each.
func (req *request) upload() (answer, error) {
	key := req.r.URL.Query().Get("key")
	if err := req.store(key, req.r.Header.Get("Content-Type"), req.r.Body, req.r.ContentLength); err != nil {
		return answer{}, err
	}
	req.w.WriteHeader(http.StatusNoContent)
	return answer{}, nil
}

// uploadForm stores the file of a form, for browsers without scripts. The
// prefix field must precede the file.
func (req *request) uploadForm() (answer, error) {
	_ = http.NewResponseController(req.w).SetReadDeadline(time.Now().Add(content.FormTimeout)) // as in patient
	body := content.NewFormBody(req.r.Body)
	r := *req.r
	r.Body = io.NopCloser(body)
	parts, err := r.MultipartReader()
	if err != nil {
		return answer{}, model.Invalid("form", "must be multipart/form-data with a file")
	}
	prefix := ""
	for {
		part, err := parts.NextRawPart()
		if errors.Is(err, io.EOF) {
			return req.bucketPage(prefix, model.Invalid("file", "choose a file first"))
		}
		if err != nil {
			return answer{}, unreadableForm(err)
		}
		if part.FormName() == "prefix" {
			text, err := io.ReadAll(io.LimitReader(part, model.MaxObjectKey+1))
			if err != nil {
				return answer{}, unreadableForm(err)
			}
			prefix = string(text)
		} else if part.FileName() != "" {
			body.BeginFile(req.r.Body)
			return req.storePart(prefix, part)
		}
	}
}

// unreadableForm returns the error for a form of which only a part was read.
func unreadableForm(err error) error {
	if errors.Is(err, content.ErrFormTooLarge) {
		return model.Invalid("form", "must have at most %d bytes before its file", content.MaxFormFields)
	}
	return model.Invalid("form", "could not be read to its end; try again")
}

func (req *request) storePart(prefix string, part *multipart.Part) (answer, error) {
	name := path.Base(strings.ReplaceAll(part.FileName(), `\`, "/"))
	if err := req.store(prefix+name, part.Header.Get("Content-Type"), part, -1); err != nil {
		return req.bucketPage(prefix, err)
	}
	return req.folderPath(prefix, "uploaded"), nil
}

// uploadIdle is how long an upload may stall.
const uploadIdle = time.Minute

func (req *request) store(key, contentType string, body io.Reader, length int64) error {
	media, parameters, err := mime.ParseMediaType(contentType)
	if err == nil {
		contentType = mime.FormatMediaType(media, parameters)
	}
	if err != nil || contentType == "" || len(contentType) > 255 || !strings.Contains(media, "/") {
		contentType = "application/octet-stream"
	}
	_, err = req.engine.Objects.ObjectUpload(req.r.Context(), req.call, objects.Upload{
		Bucket: req.id(), Key: key, ContentType: contentType, Body: &patient{req, body}, Length: length,
	})
	return err
}

// patient reads a body that may take any time but must not stall.
type patient struct {
	req  *request
	body io.Reader
}

// Read implements io.Reader. An error from reading the body is the client's,
// not the disk's.
func (p *patient) Read(data []byte) (int, error) {
	_ = http.NewResponseController(p.req.w).SetReadDeadline(time.Now().Add(uploadIdle)) // httptest's recorder does not support it
	n, err := p.body.Read(data)
	if err != nil && err != io.EOF {
		err = &model.Error{Code: model.CodeValidation, Message: "file: could not be read to its end; try again", Err: err}
	}
	return n, err
}
