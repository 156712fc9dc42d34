package server

import (
	"mime"
	"net/http"
	"strings"

	"holdfast/engine/model"
	"holdfast/engine/recovery"
	"holdfast/server/content"
)

// serveExport serves the bytes of an export to clients with a signed URL.
func (d *downloads) serveExport(w http.ResponseWriter, r *http.Request, call *model.Call) error {
	id := strings.TrimPrefix(r.URL.Path, recovery.ExportPath)
	export, err := d.engine.Recovery.ExportDownload(r.Context(), call, id, r.RequestURI)
	if err != nil {
		return err
	}
	defer export.Content.Close()
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("ETag", `"`+export.ChecksumSHA256+`"`)
	h.Set("Cache-Control", "private, no-cache")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": export.Filename}))
	if err := content.Send(w, r, export.CreatedAt, export.Content); err != nil {
		d.log.Error("an export cannot be read", "export", id, "error", err)
		return err
	}
	return nil
}
