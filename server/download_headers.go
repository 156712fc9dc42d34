package server

import (
	"mime"
	"net/http"
	"net/url"
	"path"
	"strings"

	"holdfast/engine/model"
	"holdfast/engine/objects"
	"holdfast/server/content"
)

// describe sets the headers of an object. Content that a browser could execute is never shown as a page of this
// origin.
func describe(h http.Header, o objects.Download) {
	h.Set("Content-Type", o.ContentType)
	h.Set("ETag", `"`+o.Version+`"`)
	h.Set("Cache-Control", "private, no-cache")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Content-Disposition", disposition(o))
	if o.Public {
		h.Set("Cache-Control", "public, no-cache")
	}
	a := o.Attributes
	if a == nil {
		return
	}
	for name, value := range map[string]string{
		"Cache-Control": a.CacheControl, "Content-Encoding": a.ContentEncoding, "Content-Language": a.ContentLanguage, "Expires": a.Expires,
	} {
		if value != "" {
			h.Set(name, value)
		}
	}
}

// allowOrigin lets pages of other origins read the response: those of any origin if the bucket is public, otherwise
// those that its rules allow.
func allowOrigin(h http.Header, r *http.Request, o objects.Download) {
	if o.Public {
		allowOrigins(h)
		return
	}
	content.AllowOrigin(h, o.Rules, r.Header.Get("Origin"), r.Method, exposedHeaders...)
}

// exposedHeaders are the headers of downloads that pages of other origins may read.
var exposedHeaders = []string{"Accept-Ranges", "Content-Disposition", "Content-Length", "Content-Range", "ETag", "Last-Modified"}

// allowOrigins lets pages of any origin read public content.
func allowOrigins(h http.Header) {
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Expose-Headers", strings.Join(exposedHeaders, ", "))
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
}

// preflight responds to a browser that asks whether a page of another origin may send a request. The bucket's rules
// decide, and everybody may read a public one.
func (d *downloads) preflight(w http.ResponseWriter, r *http.Request, call *model.Call, bucket, key string) error {
	public, rules, err := d.engine.Objects.ObjectPreflight(call, bucket, key)
	if err != nil {
		return err
	}
	method := r.Header.Get("Access-Control-Request-Method")
	switch {
	case content.Preflight(w.Header(), rules, r):
	case public && method != http.MethodPut && method != http.MethodPost:
		allowOrigins(w.Header())
		w.Header().Set("Access-Control-Allow-Methods", "GET, HEAD")
		w.Header().Set("Access-Control-Allow-Headers", "If-Match, If-Modified-Since, If-None-Match, If-Range, If-Unmodified-Since, Range")
		w.Header().Set("Access-Control-Max-Age", "86400")
	default:
		return model.Errorf(model.CodeNotFound, "the bucket has no rule that allows this")
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// disposition has browsers show passive content (text, images, audio, video) inline, and save everything else to a
// file, whatever the link or the object says about it. They choose the name of the file, and saving it.
func disposition(o objects.Download) string {
	name, asked := path.Base(o.Key), o.Disposition
	if asked == "" && o.Attributes != nil {
		asked = o.Attributes.ContentDisposition
	}
	kind := "attachment"
	wanted, parameters, err := mime.ParseMediaType(asked)
	if isInert(o.ContentType) && (err != nil || wanted == "inline") {
		kind = "inline"
	}
	if err == nil && parameters["filename"] != "" {
		name = parameters["filename"]
	}
	if name == "/" || name == "." {
		return kind
	}
	// RFC 6266: an ASCII name for old clients, then the exact name.
	plain := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || strings.ContainsRune(`"\%;`, r) {
			return '_'
		}
		return r
	}, name)
	text := kind + `; filename="` + plain + `"`
	if plain != name {
		text += "; filename*=UTF-8''" + strings.ReplaceAll(url.QueryEscape(name), "+", "%20")
	}
	return text
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
