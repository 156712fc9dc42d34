package sigv4

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	algorithm  = "AWS4-HMAC-SHA256"
	service    = "s3"
	timeFormat = "20060102T150405Z"
	dateFormat = "20060102"

	// MaxSkew is how far the clock of a client may differ.
	MaxSkew = 15 * time.Minute
	// maxExpiry is the longest life of a presigned URL, in seconds.
	maxExpiry = 7 * 24 * 60 * 60
)

// The values of x-amz-content-sha256 that are not a hash.
const (
	unsignedPayload   = "UNSIGNED-PAYLOAD"
	signedChunks      = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
	signedTrailer     = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"
	unsignedTrailer   = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
	contentHashHeader = "X-Amz-Content-Sha256"
)

// Request is the authorization of a request. Its values are the client's; nothing is verified before Verify.
type Request struct {
	// AccessKey is the id of the access key.
	AccessKey string
	// Presigned means that the authorization is in the URL.
	Presigned bool

	form       bool   // the authorization is in the fields of an HTML form
	policy     string // of the form, as it was sent
	http       *http.Request
	query      Query
	signed     []string // names of the signed headers, in lower case
	signature  string
	credential string
	date       string // of the scope, YYYYMMDD
	region     string
	at         time.Time
	life       time.Duration // of a presigned URL
	payload    string        // the value of x-amz-content-sha256
	key        []byte        // the signing key, once verified
}

// IsSigned reports whether a request has an authorization of any kind.
func IsSigned(r *http.Request) bool {
	if len(r.Header["Authorization"]) > 0 {
		return true
	}
	query := r.URL.Query()
	return query.Has("X-Amz-Algorithm") || query.Has("X-Amz-Signature") || query.Has("AWSAccessKeyId") || query.Has("Signature")
}

// Parse reads the authorization of a request with that query.
func Parse(r *http.Request, query Query) (*Request, error) {
	q := &Request{http: r, query: query}
	headers := r.Header["Authorization"]
	inQuery := query.Has("X-Amz-Algorithm")
	switch {
	case len(headers) > 1 || len(headers) == 1 && inQuery:
		return nil, refuse("InvalidArgument", "Only one auth mechanism allowed; only the X-Amz-Algorithm query parameter or the Authorization header should be specified")
	case len(headers) == 1:
		return q, q.parseHeader(headers[0])
	case inQuery:
		q.Presigned = true
		return q, q.parsePresigned()
	}
	if query.Has("AWSAccessKeyId") {
		return nil, refuseVersion2()
	}
	return nil, refuse("AccessDenied", "Access Denied.")
}

func refuseVersion2() error {
	return refuse("InvalidRequest", "The authorization mechanism you have provided is not supported. Please use AWS4-HMAC-SHA256.").
		with("Hint", "With boto3, Config(signature_version='s3v4'); with aws-cli, aws configure set default.s3.signature_version s3v4; with s3cmd, signature_v2 = False.")
}

func (q *Request) parseHeader(text string) error {
	kind, fields, ok := strings.Cut(text, " ")
	switch {
	case kind == "AWS":
		return refuseVersion2()
	case !ok:
		return invalidArgument("Authorization", text, "Authorization header is invalid -- one and only one ' ' (space) required.")
	case kind != algorithm:
		return invalidArgument("Authorization", kind, "Unsupported Authorization Type")
	}
	parts := map[string]string{}
	for field := range strings.SplitSeq(fields, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(field), "=")
		if _, twice := parts[name]; !ok || twice {
			return malformed("the authorization component %q is malformed.", field)
		}
		parts[name] = value
	}
	if len(parts) != 3 {
		return malformed("the authorization header requires three components: Credential, SignedHeaders, and Signature.")
	}
	for _, name := range []string{"Credential", "SignedHeaders", "Signature"} {
		if parts[name] == "" {
			return malformed("missing %s.", name)
		}
	}
	if err := q.parseParts(parts["Credential"], parts["SignedHeaders"], parts["Signature"]); err != nil {
		return err
	}
	q.payload = q.http.Header.Get(contentHashHeader)
	if q.payload == "" {
		return refuse("InvalidRequest", "Missing required header for this request: x-amz-content-sha256")
	}
	if err := q.checkPayload(); err != nil {
		return err
	}
	return q.parseHeaderTime()
}

// checkPayload checks the form of x-amz-content-sha256.
func (q *Request) checkPayload() error {
	switch {
	case slices.Contains([]string{unsignedPayload, signedChunks, signedTrailer, unsignedTrailer}, q.payload), isHash(q.payload):
		return nil
	case strings.HasPrefix(q.payload, "STREAMING-"):
		return refuse("NotImplemented", "The payload %s is not supported", q.payload)
	}
	return invalidArgument("x-amz-content-sha256", q.payload, "x-amz-content-sha256 must be UNSIGNED-PAYLOAD, STREAMING-UNSIGNED-PAYLOAD-TRAILER, STREAMING-AWS4-HMAC-SHA256-PAYLOAD, STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER, STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD, STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD-TRAILER or a valid sha256 value.")
}

func invalidArgument(name, value, message string) error {
	return refuse("InvalidArgument", "%s", message).with("ArgumentName", name).with("ArgumentValue", value)
}

func malformed(format string, args ...any) *Error {
	return refuse("AuthorizationHeaderMalformed", "The authorization header is malformed; "+format, args...)
}

// parseHeaderTime reads the time of a request whose authorization is in the header.
func (q *Request) parseHeaderTime() (err error) {
	if text := q.http.Header.Get("X-Amz-Date"); text != "" {
		q.at, err = time.Parse(timeFormat, text)
	} else {
		q.at, err = http.ParseTime(q.http.Header.Get("Date"))
	}
	if err != nil {
		return refuse("AccessDenied", "AWS authentication requires a valid Date or x-amz-date header.")
	}
	return nil
}

// parseCredential reads the credential, which every kind of authorization has.
func (q *Request) parseCredential(credential string) error {
	q.credential = credential
	parts := strings.Split(credential, "/")
	if len(parts) != 5 || parts[0] == "" {
		return q.badCredential(`the Credential is mal-formed; expecting "<YOUR-AKID>/YYYYMMDD/REGION/SERVICE/aws4_request".`)
	}
	if parts[4] != "aws4_request" {
		return q.badCredential(`incorrect terminal %q. This endpoint uses "aws4_request".`, parts[4])
	}
	if parts[3] != service {
		return q.badCredential("incorrect service %q. This endpoint belongs to %q.", parts[3], service)
	}
	q.AccessKey, q.date, q.region = parts[0], parts[1], parts[2]
	if _, err := time.Parse(dateFormat, q.date); err != nil {
		return q.badCredential("incorrect date format %q. This date in the credential must be in the format \"yyyyMMdd\".", q.date)
	}
	return nil
}

// parseParts reads the three parts that authorizations in headers and URLs have.
func (q *Request) parseParts(credential, signed, signature string) error {
	if err := q.parseCredential(credential); err != nil {
		return err
	}
	if !isHash(signature) {
		return q.badCredential("the Signature must be 64 lower-case hexadecimal digits.")
	}
	q.signature = signature
	q.signed = strings.Split(signed, ";")
	// A name counts once: the canonical request, which is built before the signature is known to be good, would otherwise
	// repeat a header's value without bound.
	once := len(slices.Compact(slices.Clone(q.signed))) == len(q.signed)
	if !once || !slices.IsSorted(q.signed) || slices.Contains(q.signed, "") || signed != strings.ToLower(signed) {
		return q.badCredential("the SignedHeaders must be sorted, in lower case, each once, and separated by semicolons.")
	}
	return nil
}

// badCredential refuses what is common to every kind of authorization.
func (q *Request) badCredential(format string, args ...any) *Error {
	switch {
	case q.form:
		return refuse("InvalidArgument", format, args...).with("ArgumentName", "x-amz-credential").with("ArgumentValue", q.credential)
	case q.Presigned:
		return refuse("AuthorizationQueryParametersError", "Error parsing the X-Amz-Credential parameter; "+format, args...)
	}
	return malformed(format, args...)
}

// badRegion refuses a request that is signed for another region.
func (q *Request) badRegion(region string) error {
	return q.badCredential("the region %q is wrong; expecting %q", q.region, region).with("Region", region)
}

func (q *Request) parsePresigned() error {
	values := map[string]string{}
	for _, p := range q.query {
		if !strings.HasPrefix(strings.ToLower(p.name), "x-amz-") {
			continue
		}
		if _, twice := values[p.name]; twice {
			return refuse("AuthorizationQueryParametersError", "%s is given twice", p.name)
		}
		values[p.name] = p.value
	}
	for _, name := range []string{"Algorithm", "Credential", "Signature", "Date", "SignedHeaders", "Expires"} {
		if values["X-Amz-"+name] == "" {
			return refuse("AuthorizationQueryParametersError", "Query-string authentication version 4 requires the X-Amz-Algorithm, X-Amz-Credential, X-Amz-Signature, X-Amz-Date, X-Amz-SignedHeaders, and X-Amz-Expires parameters.")
		}
	}
	if err := checkAlgorithm(values["X-Amz-Algorithm"]); err != nil {
		return err
	}
	if err := q.parseParts(values["X-Amz-Credential"], values["X-Amz-SignedHeaders"], values["X-Amz-Signature"]); err != nil {
		return err
	}
	at, err := time.Parse(timeFormat, values["X-Amz-Date"])
	if err != nil {
		return refuse("AuthorizationQueryParametersError", "X-Amz-Date must be in the ISO8601 Long Format \"yyyyMMdd'T'HHmmss'Z'\"")
	}
	seconds, err := strconv.Atoi(values["X-Amz-Expires"])
	switch {
	case err != nil:
		return refuse("AuthorizationQueryParametersError", "X-Amz-Expires should be a number")
	case seconds < 0:
		return refuse("AuthorizationQueryParametersError", "X-Amz-Expires must be non-negative")
	case seconds > maxExpiry:
		return refuse("AuthorizationQueryParametersError", "X-Amz-Expires must be less than a week (in seconds); that is, the given X-Amz-Expires must be less than %d seconds", maxExpiry)
	}
	q.at, q.life = at, time.Duration(seconds)*time.Second
	q.payload = unsignedPayload
	for _, given := range []string{values[contentHashHeader], q.http.Header.Get(contentHashHeader)} {
		if given != "" {
			q.payload = given
		}
	}
	return q.checkPayload()
}

// asymmetric is the other algorithm of AWS, which is not there.
const asymmetric = "AWS4-ECDSA-P256-SHA256"

// checkAlgorithm refuses all algorithms but one, in the words of AWS. It does not tell who uses the other one of AWS that
// this one is supported.
func checkAlgorithm(name string) error {
	switch name {
	case algorithm:
		return nil
	case asymmetric:
		return refuse("AuthorizationQueryParametersError", "X-Amz-Algorithm only supports %q", algorithm)
	}
	return refuse("AuthorizationQueryParametersError", `X-Amz-Algorithm only supports "%s and %s"`, algorithm, asymmetric)
}

func isHash(text string) bool {
	return len(text) == 64 && strings.Trim(text, "0123456789abcdef") == ""
}
