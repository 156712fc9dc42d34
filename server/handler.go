package server

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"holdfast/engine"
	"holdfast/engine/objects"
	"holdfast/engine/recovery"
	"holdfast/server/api"
	"holdfast/web"
)

// newHandler dispatches each request by the prefix of its path. It does not use http.ServeMux, which would clean
// paths by redirects, while object keys are exact. (The console uses one, but prevents this.)
func newHandler(e *engine.Engine, opts Options) (http.Handler, error) {
	v1 := api.New(e, api.Options{BaseURL: opts.BaseURL, ObjectsURL: opts.ObjectsURL, S3URL: opts.S3URL, Log: opts.Log, Answered: opts.Answered, Known: known})
	console, err := web.New(e, web.Options{
		BaseURL: opts.BaseURL, ObjectsURL: opts.ObjectsURL, S3URL: opts.S3URL, StatusOf: api.StatusOfError, Description: v1.Description, Log: opts.Log, Known: known,
		WriteAuditExport: api.WriteAuditExport,
	})
	if err != nil {
		return nil, err
	}
	uploads := api.NewUploads(e, api.Options{BaseURL: opts.BaseURL, Log: opts.Log, Known: known})
	files := newFiles(e, opts)
	base, err := baseOf(opts.BaseURL)
	if err != nil {
		return nil, err
	}
	objs, err := baseOf(opts.ObjectsURL)
	if err != nil {
		return nil, err
	}
	host, watched, endpoint := objs.Host, health(e), newS3(e, opts)
	main := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path := r.URL.Path; {
		case host != "" && strings.HasPrefix(path, objects.ObjectPath):
			http.NotFound(w, r)
		case path == "/v1", strings.HasPrefix(path, "/v1/"):
			v1.ServeHTTP(w, r)
		case strings.HasPrefix(path, api.UploadsPath):
			uploads.ServeHTTP(w, r)
		case strings.HasPrefix(path, objects.ObjectPath), strings.HasPrefix(path, recovery.ExportPath):
			files.ServeHTTP(w, r)
		case path == healthPath, path == readyPath:
			watched.ServeHTTP(w, r)
		default:
			console.ServeHTTP(w, r)
		}
	})
	secured := strictTransport(main, base, opts.StrictTransport)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if host != "" && strings.EqualFold(r.Host, host) {
			onlyObjects(files).ServeHTTP(w, r)
			return
		}
		if opts.S3URL != "" && opts.S3Listener == nil && endpoint.Serves(r.Host) {
			endpoint.ServeHTTP(w, r)
			return
		}
		secured.ServeHTTP(w, r)
	}), nil
}

// newFiles serves downloads, and uploads by links.
func newFiles(e *engine.Engine, opts Options) http.Handler {
	files := &downloads{engine: e, log: opts.Log}
	links := api.NewLinks(e, api.Options{BaseURL: opts.BaseURL, ObjectsURL: opts.ObjectsURL, Log: opts.Log, Answered: opts.Answered})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, objects.ObjectPath) && api.IsUploadLink(r) {
			links.ServeHTTP(w, r)
			return
		}
		files.ServeHTTP(w, r)
	})
}

// onlyObjects serves only the bytes of objects.
func onlyObjects(objs http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, objects.ObjectPath) {
			http.NotFound(w, r)
			return
		}
		objs.ServeHTTP(w, r)
	})
}

// baseOf parses a base URL, which may be "".
func baseOf(text string) (*url.URL, error) {
	base, err := url.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("read base URL: %w", err)
	}
	return base, nil
}
