package api

import (
	"log/slog"
	"net/http"
	"time"

	"holdfast/engine"
	"holdfast/engine/model"
	"holdfast/server/gate"
)

// Prefix begins every path of the API. It contains the version.
const Prefix = "/v1"

// maxBody is the maximum size of a JSON body in bytes, and bodyTimeout the maximum time for its arrival. The engine
// bounds uploads of objects.
const (
	maxBody     = 1 << 20
	bodyTimeout = 30 * time.Second
)

// Options are the options of the API.
type Options struct {
	// BaseURL is the URL by which clients reach the appliance, without a trailing slash: "http://127.0.0.1:8432".
	BaseURL string
	// ObjectsURL begins the URLs of objects if they have their own origin; "" means BaseURL.
	ObjectsURL string
	// S3URL is the URL of the S3 endpoint, "" for none.
	S3URL string
	Log   *slog.Logger
	// Answered is called after the response to every request; it may be nil.
	Answered func(operation model.Action, status int, took time.Duration)
	// Known is called for every request with a valid key; it may be nil.
	Known func(r *http.Request)
}

// API is the handler of every path under Prefix.
type API struct {
	http.Handler
	// Description returns the OpenAPI 3.1 document that it serves.
	Description func() ([]byte, error)
}

// New returns the API. It must receive paths as the client sent them: http.ServeMux in front of it would clean them
// by redirects. The caller closes the engine after the last request has ended.
func New(e *engine.Engine, opts Options) *API {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.ObjectsURL == "" {
		opts.ObjectsURL = opts.BaseURL
	}
	router := newRouter(newGate(e, opts))
	h := &handlers{engine: e, baseURL: opts.BaseURL, objectsURL: opts.ObjectsURL, s3URL: opts.S3URL, now: time.Now}
	v31, v30 := documents(router.register(opts, h.routes()))
	router.document("/openapi.json", v31)
	router.document("/openapi-3.0.json", v30)
	return &API{router, v31}
}

// newGate returns the API's gate.
func newGate(e *engine.Engine, opts Options) *gate.Gate {
	return &gate.Gate{
		Engine: e, Log: opts.Log, Header: header(), WriteError: writeError,
		Field: fields, MaxBody: maxBody, BodyTimeout: bodyTimeout,
		Answered: opts.Answered, Known: opts.Known,
	}
}

// header returns the headers of every response.
func header() http.Header {
	return http.Header{
		"Content-Type":           {"application/json"},
		"Cache-Control":          {"no-store"},
		"X-Content-Type-Options": {"nosniff"},
	}
}

// handlers decode a request, make one call of the engine, and encode the result.
type handlers struct {
	engine     *engine.Engine
	baseURL    string
	objectsURL string
	s3URL      string
	now        func() time.Time
}
