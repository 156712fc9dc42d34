package server

import (
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"

	"holdfast/engine"
	"holdfast/engine/model"
	"holdfast/engine/objects"
	"holdfast/engine/recovery"
	"holdfast/server/content"
)

// downloads serves the bytes of objects and exports to clients with a signed URL, and those of public buckets to
// everybody.
type downloads struct {
	engine *engine.Engine
	log    *slog.Logger
}

// ServeHTTP implements http.Handler.
func (d *downloads) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	call := &model.Call{
		Operation: model.Operation{Action: model.ActionObjectDownload},
		Actor:     model.Anybody(),
		IP:        model.ClientIP(r.RemoteAddr),
		UserAgent: model.CleanText(r.UserAgent(), model.MaxUserAgent),
	}
	err := d.engine.Core.ThrottleVisitor(call)
	if err == nil {
		err = d.serve(w, content.LimitRanges(r), call)
	}
	d.engine.Core.Finish(call, err)
	switch public, _ := errors.AsType[*model.Error](err); {
	case err == nil:
	case model.CodeOf(err) == model.CodeRateLimited:
		w.Header().Set("Retry-After", strconv.Itoa(public.RetryAfterSeconds()))
		http.Error(w, model.PublicMessage(err), http.StatusTooManyRequests)
	case errors.Is(err, content.ErrCutOff):
		panic(http.ErrAbortHandler) // so that no client takes a truncated response for complete
	case public != nil && public.Reason == model.ReasonUnavailable:
		w.Header().Set("Retry-After", strconv.Itoa(public.RetryAfterSeconds()))
		http.Error(w, model.PublicMessage(err), http.StatusServiceUnavailable)
	case model.CodeOf(err) == model.CodeInternal:
		d.log.Error("download", "path", r.URL.Path, "error", err)
		http.Error(w, model.PublicMessage(err), http.StatusInternalServerError)
	default:
		http.Error(w, "There is nothing here. A download link lives a few minutes; ask for a new one.", http.StatusNotFound)
	}
}

func (d *downloads) serve(w http.ResponseWriter, r *http.Request, call *model.Call) error {
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, objects.ObjectPath), "/")
	switch {
	case r.Method == http.MethodOptions && strings.HasPrefix(r.URL.Path, objects.ObjectPath):
		return d.preflight(w, r, call, bucket, key)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return model.Errorf(model.CodeNotFound, "only GET and HEAD")
	case strings.HasPrefix(r.URL.Path, recovery.ExportPath):
		call.Operation = model.Operation{Action: model.ActionExportDownload}
		return d.serveExport(w, r, call)
	}
	return d.serveObject(w, r, call, bucket, key)
}

func (d *downloads) serveObject(w http.ResponseWriter, r *http.Request, call *model.Call, bucket, key string) error {
	if r.Method == http.MethodHead {
		return d.serveHead(w, r, call, bucket, key)
	}
	object, err := d.engine.Objects.ObjectDownload(r.Context(), call, bucket, key, r.RequestURI)
	allowOrigin(w.Header(), r, object) // also with an error, so that a page sees that the object does not exist
	if err != nil {
		return err
	}
	defer object.Content.Close()
	describe(w.Header(), object)
	if err := content.Send(w, r, object.LastModified, object.Content); err != nil {
		return d.engine.Objects.Unreadable(object.Object, err)
	}
	return nil
}

// serveHead answers from the object's record: bytes that are not on this machine are not fetched for it.
func (d *downloads) serveHead(w http.ResponseWriter, r *http.Request, call *model.Call, bucket, key string) error {
	object, err := d.engine.Objects.ObjectDownloadHead(call, bucket, key, r.RequestURI)
	allowOrigin(w.Header(), r, object)
	if err != nil {
		return err
	}
	describe(w.Header(), object)
	return content.Send(w, r, object.LastModified, content.OfSize(object.SizeBytes))
}
