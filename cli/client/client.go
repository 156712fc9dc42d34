package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"holdfast/server/api/wire"
)

// Config configures a Client.
type Config struct {
	// URL is the appliance's address. The version at its end is optional:
	// "https://db.example.com" and "https://db.example.com/v1" are the same.
	URL string
	// Key is the API key. Without one, only device login works.
	Key string
	// HTTP sends the requests; nil means http.DefaultTransport. Redirects are
	// not followed: the API has none, and they could leak the key.
	HTTP http.RoundTripper
	// Retries is how often a request is sent again that failed in a way that may
	// pass: the connection broke, the appliance restarts, or the budget is used
	// up, for as long as the response says. A POST then has an Idempotency-Key,
	// so that it is carried out once; what streams a body is not repeated.
	Retries int
	// UserAgent identifies the program in the audit log.
	UserAgent string
}

// Client sends requests to one appliance with one key.
type Client struct {
	base      string // with the version, without a trailing slash
	key       string
	userAgent string
	retries   int
	http      *http.Client
}

// version is the first segment of every API path.
const version = "/v1"

// New returns a client. It opens no connection.
func New(cfg Config) (*Client, error) {
	base, err := BaseURL(cfg.URL)
	if err != nil {
		return nil, err
	}
	if strings.ContainsFunc(cfg.Key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("the API key holds a character that no key has, such as a space or a line break")
	}
	if cfg.UserAgent == "" {
		cfg.UserAgent = "holdfast-client"
	}
	return &Client{
		base: base, key: cfg.Key, userAgent: cfg.UserAgent, retries: cfg.Retries,
		http: &http.Client{
			Transport:     cfg.HTTP,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// BaseURL returns the canonical form of an appliance's address: with the
// version, without a trailing slash.
func BaseURL(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", fmt.Errorf("%q is not a URL such as http://127.0.0.1:8432", address)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("%q is not a URL such as http://127.0.0.1:8432", u.Redacted())
	}
	return strings.TrimSuffix(strings.TrimRight(u.String(), "/"), version) + version, nil
}

// Request is a raw API request.
type Request struct {
	Method string
	// Path is relative to the version, and escaped: "/databases/db_…".
	Path  string
	Query url.Values
	// Body is sent unchanged with the ContentType; nil means no body. Size is
	// its length in bytes, -1 if unknown.
	Body        io.Reader
	Size        int64
	ContentType string
	Header      http.Header
}

// Do sends a request with the key and returns the response, whatever its
// status. The caller closes its body.
func (c *Client) Do(ctx context.Context, r Request) (*http.Response, error) {
	address := c.base + r.Path
	if len(r.Query) > 0 {
		address += "?" + r.Query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, r.Method, address, r.Body)
	if err != nil {
		return nil, fmt.Errorf("make a request: %w", err)
	}
	for name, values := range r.Header {
		request.Header[name] = values
	}
	if r.Body != nil {
		request.ContentLength = r.Size
		if r.ContentType != "" {
			request.Header.Set("Content-Type", r.ContentType)
		}
	}
	request.Header.Set("User-Agent", c.userAgent)
	if c.key != "" {
		request.Header.Set("Authorization", "Bearer "+c.key)
	}
	if r.prompt() {
		return c.steadily(request)
	}
	return c.http.Do(request)
}

// prompt reports whether the server answers a request at once. It may answer
// others only when the work is done, however long that takes.
func (r Request) prompt() bool {
	return r.Method == http.MethodGet || strings.HasPrefix(r.Path, "/device/")
}

// meta holds the metadata of any kind of response.
type meta struct {
	wire.FolderMeta
	wire.LogMeta
}

// call sends a request with a JSON body, or none if body is nil, and decodes
// the data of the response.
func call[T any](ctx context.Context, c *Client, method, path string, query url.Values, body any) (T, meta, error) {
	r := Request{Method: method, Path: path, Query: query, Header: conditions(ctx, method)}
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			var zero T
			return zero, meta{}, fmt.Errorf("encode the request: %w", err)
		}
		r.Body, r.Size, r.ContentType = bytes.NewReader(text), int64(len(text)), "application/json"
	}
	return send[T](ctx, c, r)
}

// send sends a request and decodes the data of the response.
func send[T any](ctx context.Context, c *Client, r Request) (data T, m meta, err error) {
	answer, err := c.retrying(ctx, r)
	if err != nil {
		return data, m, err
	}
	defer answer.Body.Close()
	if err := Refusal(answer); err != nil {
		return data, m, err
	}
	var envelope struct {
		Data *T   `json:"data"`
		Meta meta `json:"meta"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&envelope); err != nil {
		if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
			return data, m, notAPI(answer)
		}
		return data, m, fmt.Errorf("read the answer: %w", err)
	}
	noteETag(ctx, answer)
	if envelope.Data == nil { // every API response has data
		return data, m, notAPI(answer)
	}
	return *envelope.Data, envelope.Meta, nil
}

// one calls an operation that returns a single record.
func one[T any](ctx context.Context, c *Client, method, path string, body any) (T, error) {
	data, _, err := call[T](ctx, c, method, path, nil, body)
	return data, err
}

// path joins segments and escapes each, so that no id can reach another path.
func path(segments ...string) string {
	var b strings.Builder
	for _, s := range segments {
		b.WriteByte('/')
		b.WriteString(url.PathEscape(s))
	}
	return b.String()
}
