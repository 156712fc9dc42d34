package server

import (
	"mime"
	"net/http"
	"net/url"
	"path"
	"strings"

	"holdfast/engine/model"
)

// describe sets the headers of an object. Content that a browser could execute is never shown as a page of this
// origin.
func describe(h http.Header, o model.Object, public bool) {
	h.Set("Content-Type", o.ContentType)
	h.Set("ETag", `"`+o.Version+`"`)
	h.Set("Cache-Control", "private, no-cache")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Content-Disposition", disposition(o))
	if public {
		h.Set("Cache-Control", "public, no-cache")
		allowOrigins(h)
	}
}

// allowOrigins lets pages of any origin read public content.
func allowOrigins(h http.Header) {
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Expose-Headers", "Accept-Ranges, Content-Disposition, Content-Length, Content-Range, ETag, Last-Modified")
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
}

// preflight responds to a browser that asks whether a page of another origin may send a request. It responds only
// for public buckets.
func (d *downloads) preflight(w http.ResponseWriter, call *model.Call, bucket string) error {
	if err := d.engine.Objects.ObjectPreflight(call, bucket); err != nil {
		return err
	}
	allowOrigins(w.Header())
	w.Header().Set("Access-Control-Allow-Methods", "GET, HEAD")
	w.Header().Set("Access-Control-Allow-Headers", "If-Match, If-Modified-Since, If-None-Match, If-Range, If-Unmodified-Since, Range")
	w.Header().Set("Access-Control-Max-Age", "86400")
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// disposition has browsers show passive content (text, images, audio, video) inline, and save everything else to a
// file.
func disposition(o model.Object) string {
	kind := "attachment"
	if isInert(o.ContentType) {
		kind = "inline"
	}
	name := path.Base(o.Key)
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
