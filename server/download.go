package server

import (
	"log/slog"
	"mime"
	"net"
	"net/http"
	"path"
	"strings"

	"holdfast/engine"
	"holdfast/engine/model"
)

// maxRanges is how many ranges one request may ask for: the standard library
// answers any number, at a cost far above that of asking.
const maxRanges = 8

// downloads serves the bytes of objects and exports, to who holds a signed URL
// or, from public buckets, to anybody.
type downloads struct {
	engine *engine.Engine
	log    *slog.Logger
}

// ServeHTTP implements http.Handler.
func (d *downloads) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	call := d.newCall(r)
	err := d.serve(w, limitRanges(r), call)
	d.engine.Finish(call, err)
	if err == nil {
		return
	}
	if model.CodeOf(err) == model.CodeInternal {
		d.log.Error("download", "path", r.URL.Path, "error", err)
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	http.Error(w, "There is nothing here. A download link lives a few minutes; ask for a new one.", http.StatusNotFound)
}

func (d *downloads) newCall(r *http.Request) *model.Call {
	ip, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		ip = r.RemoteAddr
	}
	return &model.Call{
		Operation: model.Operation{Action: model.ActionObjectDownload},
		Actor:     model.Actor{Type: model.ActorSystem, Name: "download link"},
		IP:        ip,
		UserAgent: r.UserAgent(),
	}
}

func (d *downloads) serve(w http.ResponseWriter, r *http.Request, call *model.Call) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return model.Errorf(model.CodeNotFound, "only GET and HEAD")
	}
	if strings.HasPrefix(r.URL.Path, engine.ExportPath) {
		call.Operation = model.Operation{Action: model.ActionExportDownload}
		return d.serveExport(w, r, call)
	}
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, engine.ObjectPath), "/")
	query := r.URL.Query()
	object, err := d.engine.ObjectDownload(call, bucket, key, query.Get("expires"), query.Get("signature"))
	if err != nil {
		return err
	}
	defer object.Content.Close()
	describe(w.Header(), object.Object)
	http.ServeContent(w, r, "", object.LastModified, object.Content.Content())
	return nil
}

// limitRanges takes away a Range header that asks for too many.
func limitRanges(r *http.Request) *http.Request {
	if strings.Count(r.Header.Get("Range"), ",") >= maxRanges {
		r.Header.Del("Range") // RFC 9110, 14.2: a server may ignore it
	}
	return r
}

// describe sets the headers of an object. What a browser could run is never
// shown as a page of this origin.
func describe(h http.Header, o model.Object) {
	h.Set("Content-Type", o.ContentType)
	h.Set("ETag", `"`+o.Version+`"`)
	h.Set("Cache-Control", "private, no-cache")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Content-Disposition", disposition(o))
}

// disposition shows in the browser what is only ever looked at or listened
// to, and has everything else saved to a file.
func disposition(o model.Object) string {
	kind := "attachment"
	if isInert(o.ContentType) {
		kind = "inline"
	}
	name := path.Base(o.Key)
	if name == "/" || name == "." {
		return kind
	}
	if text := mime.FormatMediaType(kind, map[string]string{"filename": name}); text != "" {
		return text
	}
	return kind
}

func isInert(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return false
	}
	switch media {
	case "text/plain", "image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp":
		return true
	}
	return strings.HasPrefix(media, "audio/") || strings.HasPrefix(media, "video/")
}
