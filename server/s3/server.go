package s3

import (
	"context"
	"errors"
	"hash"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"holdfast/engine"
	"holdfast/engine/access"
	"holdfast/engine/model"
	"holdfast/server/gate"
	"holdfast/server/s3/sigv4"
)

// Options are the options of a Server.
type Options struct {
	// URL is the URL by which clients reach the endpoint. A bucket's name in front of its host is the virtual host of
	// that bucket.
	URL string
	// WebsiteURL is the URL below whose host buckets are served as websites, each on its name in front of that host; ""
	// for none.
	WebsiteURL string
	Log        *slog.Logger
	// Answered is called after the response to every request; it may be nil.
	Answered func(operation model.Action, status int, took time.Duration)
	// Known is called for every request with a valid key; it may be nil.
	Known func(r *http.Request)
}

// Server serves the S3 protocol. It must receive paths as the client sent them.
type Server struct {
	engine *engine.Engine
	gate   *gate.Gate
	pages  *gate.Gate // of websites
	routes routeTable
	host   string // in lower case, without a port; "" if buckets have no hosts
	sites  string // the host that follows the names of websites, likewise
	scheme string // of websites

	digests   digests
	documents documents
}

// New returns the handler of the endpoint.
func New(e *engine.Engine, opts Options) *Server {
	s := &Server{engine: e, routes: newRouteTable(), host: virtualHost(opts.URL), documents: newDocuments()}
	s.gate = &gate.Gate{
		Engine: e, Log: opts.Log, Header: http.Header{"Server": {"holdfast"}, "X-Content-Type-Options": {"nosniff"}},
		Authenticate: s.authenticate, WriteError: writeError, Answered: opts.Answered, Known: opts.Known,
	}
	pages := *s.gate
	pages.WriteError = writePage
	s.pages = &pages
	if base, err := url.Parse(opts.WebsiteURL); err == nil {
		s.sites, s.scheme = virtualHost(opts.WebsiteURL), base.Scheme
	}
	return s
}

// virtualHost returns the host that may follow a bucket's name. An address has none.
func virtualHost(base string) string {
	u, err := url.Parse(base)
	if err != nil || net.ParseIP(u.Hostname()) != nil {
		return ""
	}
	return strings.ToLower(u.Hostname())
}

// Serves reports whether a request with that Host is for the endpoint, the virtual host of a bucket, or a website.
func (s *Server) Serves(host string) bool {
	name := hostName(host)
	return s.websiteOf(host) != "" || s.host != "" && (name == s.host || strings.HasSuffix(name, "."+s.host))
}

// hostName returns a Host without its port, in lower case.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(host)
}

// request is a request of the protocol.
type request struct {
	*gate.Exchange
	engine      *engine.Engine
	method      string
	bucket, key string
	missing     objectName // of which errors are, where they are not of bucket and key: the source of a copy
	query       sigv4.Query
	malformed   error          // why the query is incomplete
	hoisted     http.Header    // of a presigned request: headers that are parameters of the query
	signature   *sigv4.Request // once authenticated
	websites    string         // the scheme of websites, "" if none are served
	page        int            // the status of the page of a website, 0 elsewhere
	form        *form          // of an upload by a browser, once read
	begun       bool           // the response's document has begun
	digests     *digests
	documents   *documents
	release     func() // of the digest, nil while there is none
}

type objectName struct{ bucket, key string }

type requestKey struct{}

// requestOf returns the request of an exchange.
func requestOf(x *gate.Exchange) *request { return x.Request.Context().Value(requestKey{}).(*request) }

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	continueEmpty(w, r)
	q := &request{engine: s.engine, method: r.Method, digests: &s.digests, documents: &s.documents, websites: s.scheme}
	defer q.end()
	if bucket := s.websiteOf(r.Host); bucket != "" {
		q.bucket, q.key = bucket, strings.TrimPrefix(r.URL.Path, "/")
		s.website(q).ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requestKey{}, q)))
		return
	}
	q.query, q.malformed = sigv4.ParseQuery(r.URL.RawQuery)
	q.hoisted = sigv4.Hoisted(r, q.query)
	q.bucket, q.key = s.target(r)
	route := s.routes.of(r, q)
	r = r.WithContext(context.WithValue(r.Context(), requestKey{}, q))
	if r.Method == http.MethodOptions && q.bucket != "" {
		s.preflight(q).ServeHTTP(w, r)
		return
	}
	if err := q.misrouted(q.given(r.Header, "X-Amz-Copy-Source")); err != nil {
		unknown := model.Operation{Action: model.ActionUnknown, Scope: model.ScopeStorageRead}
		s.gate.Open(unknown, func(x *gate.Exchange) error {
			q.Exchange = x
			return err
		}).ServeHTTP(w, r)
		return
	}
	if public := s.publicRequest(r, q); public != nil {
		public.ServeHTTP(w, r)
		return
	}
	s.gate.Handler(route.operation, func(x *gate.Exchange) error {
		q.Exchange = x
		if err := refuseHeaders(x); err != nil {
			return err
		}
		if q.bucket != "" && x.Request.Header.Get("Origin") != "" {
			if b, err := q.findBucket(); err == nil {
				q.allowOrigin(b)
			}
		}
		return refused(route.serve(q))
	}).ServeHTTP(w, r)
}

// continueEmpty answers an expectation of 100 Continue for an empty body, which net/http leaves out. Without it,
// botocore takes the status line of the answer for that of the connection's next answer, and waits a minute.
func continueEmpty(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength == 0 && r.ProtoMajor == 1 && strings.EqualFold(r.Header.Get("Expect"), "100-continue") {
		w.WriteHeader(http.StatusContinue)
	}
}

// target returns the bucket and the key that a request names, "" for none.
func (s *Server) target(r *http.Request) (bucket, key string) {
	path := strings.TrimPrefix(r.URL.Path, "/")
	if bucket, ok := strings.CutSuffix(hostName(r.Host), "."+s.host); ok && s.host != "" {
		return bucket, path
	}
	bucket, key, _ = strings.Cut(path, "/")
	return bucket, key
}

// authenticate verifies the signature of a request.
func (s *Server) authenticate(x *gate.Exchange) error {
	x.Header()["X-Amz-Request-Id"] = []string{x.Call.RequestID}
	q := requestOf(x)
	if q.malformed != nil {
		return refused(q.malformed)
	}
	if isForm(x.Request, q) {
		return s.authenticateForm(x, q)
	}
	if !sigv4.IsSigned(x.Request) {
		return q.refuseUnsigned(x.Request.Header)
	}
	signature, err := sigv4.Parse(x.Request, q.query)
	if err != nil {
		return refused(err)
	}
	if signature.Presigned {
		if err := s.engine.Core.ByLink(x.Call); err != nil {
			return err
		}
	}
	if err := s.authenticateKey(x, signature, signature.Verify); err != nil {
		return err
	}
	return q.takeHoisted(x.Request.Header)
}

// authenticateKey makes the access key that signed a request the caller, if its signature is verified.
func (s *Server) authenticateKey(x *gate.Exchange, signature *sigv4.Request, verify func(secret, region string, now time.Time) error) error {
	err := s.engine.Access.AuthenticateSigned(x.Call, signature.AccessKey, func(secret string) error {
		return refused(verify(secret, model.S3Region, s.engine.Core.Clock()))
	})
	if errors.Is(err, access.ErrNoAccessKey) {
		return fail("InvalidAccessKeyId", "The AWS Access Key Id you provided does not exist in our records.").with("AWSAccessKeyId", signature.AccessKey)
	}
	requestOf(x).signature = signature
	return err
}

// maxHeaders is the maximum size of the headers x-amz-* of a request in bytes.
const maxHeaders = 8 << 10

// refuseHeaders refuses headers whose neglect would betray the client.
func refuseHeaders(x *gate.Exchange) error {
	size := 0
	for name, values := range x.Request.Header {
		value := values[0]
		if strings.HasPrefix(name, "X-Amz-") {
			size += len(name) + len(value)
		}
		switch {
		case name == "X-Amz-Acl":
			if err := requestOf(x).refuseACL(value); err != nil {
				return err
			}
		case name == "X-Amz-Storage-Class":
			if value != "STANDARD" {
				return fail("InvalidStorageClass", "The storage class you specified is not valid: there is only STANDARD")
			}
		case name == "X-Amz-Expected-Bucket-Owner", name == "X-Amz-Source-Expected-Bucket-Owner":
			if value != x.Call.Organization && value != x.Call.Actor.ID {
				return fail("AccessDenied", "Access Denied.")
			}
		case strings.HasPrefix(name, "X-Amz-Grant-"), strings.HasPrefix(name, "X-Amz-Server-Side-Encryption"),
			strings.HasPrefix(name, "X-Amz-Copy-Source-Server-Side-Encryption"), name == "X-Amz-Mfa", name == "X-Amz-Write-Offset-Bytes":
			return notImplemented(name, "")
		case name == "X-Amz-Object-Ownership":
			if value == "BucketOwnerPreferred" || value == "ObjectWriter" {
				return notImplemented(name, value)
			}
			if value != "BucketOwnerEnforced" {
				return invalidArgument("x-amz-object-ownership", value, "Invalid x-amz-object-ownership header: %s", value)
			}
		}
	}
	if size > maxHeaders {
		return fail("RequestHeaderSectionTooLarge", "Your request header section exceeds the maximum allowed size.").with("MaxSizeAllowed", strconv.Itoa(maxHeaders))
	}
	return requestOf(x).refuseExtensions(x.Request.Header)
}

// findBucket returns the request's bucket.
func (q *request) findBucket() (model.Bucket, error) {
	return q.engine.Objects.BucketNamed(q.Call, q.bucket)
}

// payload returns the body of the request, verified at its end.
func (q *request) payload(withMD5 bool, of sigv4.Of) (*payload, error) {
	return q.payloadOf(q.StreamBody(), withMD5, of)
}

// payloadOf is payload of what reads the body.
func (q *request) payloadOf(stream io.Reader, withMD5 bool, of sigv4.Of) (*payload, error) {
	if q.Request.ContentLength < 0 && q.Request.Header.Get("X-Amz-Decoded-Content-Length") == "" {
		return nil, fail("MissingContentLength", "You must provide the Content-Length HTTP header.")
	}
	body := io.Reader(http.NoBody)
	if q.Request.Body != nil && q.Request.Body != http.NoBody {
		body = stream
	}
	var digest hash.Hash
	if withMD5 {
		digest = q.digest(q.Request.ContentLength)
	}
	b, err := q.signature.Body(body, digest, of)
	if err != nil {
		return nil, refused(err)
	}
	if b.Length < 0 { // the plan's limit is checked against it
		return nil, fail("MissingContentLength", "You must provide the Content-Length HTTP header.")
	}
	return &payload{b}, nil
}

// digest returns the hash for the MD5 of the request's body, of that many bytes. It is the request's until its end.
func (q *request) digest(size int64) (h hash.Hash) {
	h, q.release = q.digests.get(size)
	return h
}

// end gives back what the request has used.
func (q *request) end() {
	if q.release != nil {
		q.release()
	}
}

// payload is a sigv4.Body whose refusals are failures.
type payload struct{ *sigv4.Body }

// Read implements io.Reader.
func (p *payload) Read(b []byte) (int, error) {
	n, err := p.Body.Read(b)
	return n, refused(err)
}
