package sigv4

import (
	"bufio"
	"bytes"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// The credentials and the time of the examples in AWS's documentation of S3.
const (
	exampleKey    = "AKIAIOSFODNN7EXAMPLE"
	exampleSecret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
	exampleRegion = "us-east-1"
)

func exampleTime() time.Time { return time.Date(2013, 5, 24, 0, 0, 0, 0, time.UTC) }

// parseHTTP reads a request as a server would.
func parseHTTP(t testing.TB, text string) *http.Request {
	t.Helper()
	head, body, _ := strings.Cut(text, "\n\n")
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(strings.ReplaceAll(head, "\n", "\r\n") + "\r\n\r\n" + body)))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func codeOf(err error) string {
	if refused, ok := errors.AsType[*Error](err); ok {
		return refused.Code
	}
	return fmt.Sprint(err)
}

// TestExamples verifies the examples of "Signature Calculations for the Authorization Header" and of "Authenticating
// Requests: Using Query Parameters".
func TestExamples(t *testing.T) {
	t.Parallel()
	const credential = "Credential=" + exampleKey + "/20130524/us-east-1/s3/aws4_request,SignedHeaders="
	for name, text := range map[string]string{
		"GET Object": `GET /test.txt HTTP/1.1
Host: examplebucket.s3.amazonaws.com
Authorization: AWS4-HMAC-SHA256 ` + credential + `host;range;x-amz-content-sha256;x-amz-date,Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41
Range: bytes=0-9
x-amz-content-sha256: ` + emptyHash + `
x-amz-date: 20130524T000000Z`,
		"PUT Object": `PUT /test%24file.text HTTP/1.1
Host: examplebucket.s3.amazonaws.com
Date: Fri, 24 May 2013 00:00:00 GMT
Authorization: AWS4-HMAC-SHA256 ` + credential + `date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class,Signature=98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd
x-amz-date: 20130524T000000Z
x-amz-storage-class: REDUCED_REDUNDANCY
x-amz-content-sha256: 44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072
Content-Length: 21

Welcome to Amazon S3.`,
		"GET Bucket Lifecycle": `GET /?lifecycle HTTP/1.1
Host: examplebucket.s3.amazonaws.com
Authorization: AWS4-HMAC-SHA256 ` + credential + `host;x-amz-content-sha256;x-amz-date,Signature=fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543
x-amz-date: 20130524T000000Z
x-amz-content-sha256: ` + emptyHash,
		"Get Bucket (List Objects)": `GET /?max-keys=2&prefix=J HTTP/1.1
Host: examplebucket.s3.amazonaws.com
Authorization: AWS4-HMAC-SHA256 ` + credential + `host;x-amz-content-sha256;x-amz-date,Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7
x-amz-date: 20130524T000000Z
x-amz-content-sha256: ` + emptyHash,
		"presigned": `GET /test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404 HTTP/1.1
Host: examplebucket.s3.amazonaws.com`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q, err := parseRequest(parseHTTP(t, text))
			if err != nil {
				t.Fatal(err)
			}
			if q.AccessKey != exampleKey {
				t.Errorf("the access key is %q", q.AccessKey)
			}
			if err := q.Verify(exampleSecret, exampleRegion, exampleTime()); err != nil {
				t.Errorf("%v\n%s", err, q.canonical())
			}
			if got := codeOf(q.Verify(exampleSecret+"x", exampleRegion, exampleTime())); got != "SignatureDoesNotMatch" {
				t.Errorf("with another secret: %s", got)
			}
			if got := codeOf(q.Verify(exampleSecret, "eu-west-1", exampleTime())); got != "AuthorizationHeaderMalformed" && !q.Presigned || q.Presigned && got != "AuthorizationQueryParametersError" {
				t.Errorf("in another region: %s", got)
			}
			late := q.Verify(exampleSecret, exampleRegion, exampleTime().Add(25*time.Hour))
			if got := codeOf(late); got != "RequestTimeTooSkewed" && got != "AccessDenied" {
				t.Errorf("a day later: %s", got)
			}
			if q.Presigned {
				return
			}
			body, err := q.Body(q.http.Body, md5.New(), OfPayload)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadAll(body); err != nil {
				t.Errorf("the body: %v", err)
			}
		})
	}
}

// chunkExample is the example of "Signature Calculations for the Authorization Header: Transferring Payload in Multiple
// Chunks".
const chunkHead = `PUT /examplebucket/chunkObject.txt HTTP/1.1
Host: s3.amazonaws.com
x-amz-date: 20130524T000000Z
x-amz-storage-class: REDUCED_REDUNDANCY
Authorization: AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,SignedHeaders=content-encoding;content-length;host;x-amz-content-sha256;x-amz-date;x-amz-decoded-content-length;x-amz-storage-class,Signature=4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9
x-amz-content-sha256: STREAMING-AWS4-HMAC-SHA256-PAYLOAD
Content-Encoding: aws-chunked
x-amz-decoded-content-length: 66560
Content-Length: 66824

`

func chunkExample() string {
	return "10000;chunk-signature=ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648\r\n" + strings.Repeat("a", 65536) + "\r\n" +
		"400;chunk-signature=0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497\r\n" + strings.Repeat("a", 1024) + "\r\n" +
		"0;chunk-signature=b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9\r\n\r\n"
}

const trailerHead = `PUT /examplebucket/chunkObject.txt HTTP/1.1
Host: s3.amazonaws.com
x-amz-date: 20130524T000000Z
x-amz-storage-class: REDUCED_REDUNDANCY
Authorization: AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,SignedHeaders=content-encoding;host;x-amz-content-sha256;x-amz-date;x-amz-decoded-content-length;x-amz-storage-class;x-amz-trailer,Signature=106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e
x-amz-content-sha256: STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER
Content-Encoding: aws-chunked
x-amz-decoded-content-length: 66560
x-amz-trailer: x-amz-checksum-crc32c
Content-Length: %d

`

func trailerExample() string {
	return "10000;chunk-signature=b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2\r\n" + strings.Repeat("a", 65536) + "\r\n" +
		"400;chunk-signature=1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7\r\n" + strings.Repeat("a", 1024) + "\r\n" +
		"0;chunk-signature=2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992\r\n" +
		"x-amz-checksum-crc32c:sOO8/Q==\r\n" +
		"x-amz-trailer-signature:d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435\r\n\r\n"
}

// read verifies a request and reads its payload.
func read(t testing.TB, r *http.Request) ([]byte, error) {
	t.Helper()
	q, err := parseRequest(r)
	if err != nil {
		return nil, err
	}
	if err := q.Verify(exampleSecret, exampleRegion, exampleTime()); err != nil {
		return nil, err
	}
	body, err := q.Body(r.Body, nil, OfPayload)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(body)
}

func TestSignedChunks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(string) string
		want   string
	}{
		"whole":              {func(s string) string { return s }, ""},
		"changed byte":       {func(s string) string { return strings.Replace(s, "aaab", "aaaa", 1)[:100] + "b" + s[101:] }, "SignatureDoesNotMatch"},
		"changed signature":  {func(s string) string { return strings.Replace(s, "signature=0", "signature=1", 1) }, "SignatureDoesNotMatch"},
		"without the end":    {func(s string) string { return s[:len(s)-87] }, "IncompleteBody"},
		"cut off in a chunk": {func(s string) string { return s[:5000] }, "IncompleteBody"},
		"chunks exchanged":   {func(s string) string { i := strings.Index(s, "400;"); return s[i:len(s)-86] + s[:i] + s[len(s)-86:] }, "SignatureDoesNotMatch"},
		"more after the end": {func(s string) string { return s + "x" }, "IncompleteBody"},
		"unsigned chunk":     {func(s string) string { return strings.Replace(s, ";chunk-signature=", ";x=", 1) }, "IncompleteBody"},
		"endless size":       {func(s string) string { return strings.Repeat("0", 10000) }, "IncompleteBody"},
		"size with a sign":   {func(s string) string { return "+" + s }, "IncompleteBody"},
		"a trailer, unasked": {func(s string) string { return s[:len(s)-2] + "a:b\r\n\r\n" }, "MalformedTrailerError"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := parseHTTP(t, chunkHead)
			r.Body = io.NopCloser(strings.NewReader(c.change(chunkExample())))
			payload, err := read(t, r)
			if c.want != "" {
				if got := codeOf(err); got != c.want {
					t.Errorf("got %s, want %s", got, c.want)
				}
			} else if err != nil || string(payload) != strings.Repeat("a", 66560) {
				t.Errorf("got %d bytes and %v", len(payload), err)
			}
		})
	}
}

// TestChunksBeyondTheLength: no byte is read of a chunk that goes beyond the announced length.
func TestChunksBeyondTheLength(t *testing.T) {
	t.Parallel()
	body := "2000\r\n" + strings.Repeat("a", 0x2000) + "\r\n400\r\n" + strings.Repeat("a", 0x400) + "\r\n0\r\n\r\n"
	for length, want := range map[int64]int{0x1fff: 0, 0x2000: 0x2000, 0x23ff: 0x2000, 0x2400: 0x2400} {
		q := &Request{payload: unsignedTrailer}
		got, err := io.ReadAll(q.newChunks(strings.NewReader(body), length))
		if len(got) != want || (err == nil) != (length == 0x2400) || err != nil && codeOf(err) != "IncompleteBody" {
			t.Errorf("announced as %d bytes: %d are read, want %d, %v", length, len(got), want, err)
		}
	}
}

func TestSignedTrailer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ old, new, want string }{
		"whole":             {"", "", ""},
		"as minio-go does":  {"sOO8/Q==\r\n", "sOO8/Q==\n\r\n", ""},
		"another checksum":  {"sOO8/Q==", "sOO8/A==", "SignatureDoesNotMatch"},
		"another signature": {"d81f82fc", "d81f82fd", "SignatureDoesNotMatch"},
		"no signature":      {"x-amz-trailer-signature:d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435\r\n", "", "MalformedTrailerError"},
		"no checksum":       {"x-amz-checksum-crc32c:sOO8/Q==\r\n", "", "MalformedTrailerError"},
		"another trailer":   {"crc32c:", "crc32:", "MalformedTrailerError"},
		"a third line":      {"x-amz-trailer-signature", "x-amz-trailer-other", "IncompleteBody"},
		"short signature":   {"d81f82fc", "", "IncompleteBody"},
		"a carriage return": {"sOO8/Q==\r\n", "sOO8/Q==\r", "IncompleteBody"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(trailerExample(), c.old, c.new, 1)
			r := parseHTTP(t, fmt.Sprintf(trailerHead, len(text)))
			r.Body = io.NopCloser(strings.NewReader(text))
			if _, err := read(t, r); c.want == "" && err != nil || c.want != "" && codeOf(err) != c.want {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// signed returns a request that is signed with the example's key.
func signed(method, target, payload string, header map[string]string, body string) *http.Request {
	r := httptest.NewRequest(method, "http://s3.example.com"+target, strings.NewReader(body))
	r.Header.Set("X-Amz-Date", exampleTime().Format(timeFormat))
	r.Header.Set(contentHashHeader, payload)
	for name, value := range header {
		r.Header.Set(name, value)
	}
	signForTest(r, exampleKey, exampleSecret)
	return r
}

// TestTrailers covers bodies as boto3 and aws-cli send them, with each algorithm.
func TestTrailers(t *testing.T) {
	t.Parallel()
	for algorithm, sum := range map[string]string{
		"CRC32": "y/Q5Jg==", "CRC32C": "4waSgw==", "CRC64NVME": "rosUhgp5mIg=", "SHA1": "98O8HYCOBHMqzjhTRZK7Ok2XBE4=",
		"SHA256": "FeKw07sG0vrJmKqR/JYCWYpXU8pGCBm1ajC3a/WLd2o=",
	} {
		if algorithm == "SHA1" || algorithm == "SHA256" {
			h := NewHash(algorithm)
			h.Write([]byte("123456789"))
			sum = base64.StdEncoding.EncodeToString(h.Sum(nil))
		}
		name := HeaderOf(algorithm)
		head := map[string]string{"X-Amz-Trailer": name, "X-Amz-Decoded-Content-Length": "9", "Content-Encoding": "aws-chunked"}
		good := "9\r\n123456789\r\n0\r\n" + name + ":" + sum + "\r\n\r\n"
		minio := strings.TrimSuffix(good, "\r\n\r\n") + "\n\r\n\r\n" // minio-go's
		for _, text := range []string{good, minio} {
			if payload, err := read(t, signed("PUT", "/b/k", unsignedTrailer, head, text)); err != nil || string(payload) != "123456789" {
				t.Errorf("%s: %q, %v", algorithm, payload, err)
			}
		}
		for _, more := range []string{"x", "\n", "\r\n\r\n", "\r\nx"} {
			if _, err := read(t, signed("PUT", "/b/k", unsignedTrailer, head, good+more)); codeOf(err) != "IncompleteBody" {
				t.Errorf("%s, with %q at the end: %v", algorithm, more, err)
			}
		}
		for what, text := range map[string]string{
			"BadDigest":             strings.Replace(good, "12345", "12346", 1),
			"InvalidChunkSizeError": "5\r\n12345\r\n4\r\n6789\r\n0\r\n" + name + ":" + sum + "\r\n\r\n",
			"IncompleteBody":        "5\r\n12345\r\n0\r\n" + name + ":" + sum + "\r\n\r\n",
			"MalformedTrailerError": "9\r\n123456789\r\n0\r\n\r\n",
		} {
			if _, err := read(t, signed("PUT", "/b/k", unsignedTrailer, head, text)); codeOf(err) != what {
				t.Errorf("%s: %v, want %s", algorithm, err, what)
			}
		}
		for _, cut := range []string{strings.TrimSuffix(good, "\r\n"), "9\r\n123456789\r\n0\r\n"} {
			if _, err := read(t, signed("PUT", "/b/k", unsignedTrailer, head, cut)); codeOf(err) != "IncompleteBody" {
				t.Errorf("%s, cut off: %v", algorithm, err)
			}
		}
		plain := map[string]string{name: sum}
		if _, err := read(t, signed("PUT", "/b/k", unsignedPayload, plain, "123456789")); err != nil {
			t.Errorf("%s in a header: %v", algorithm, err)
		}
		if _, err := read(t, signed("PUT", "/b/k", unsignedPayload, plain, "12345678")); codeOf(err) != "BadDigest" {
			t.Errorf("%s in a header: %v", algorithm, err)
		}
	}
}

// presignedBy returns a request that names an algorithm, and is complete otherwise.
func presignedBy(algorithm string) *http.Request {
	const rest = "&X-Amz-Credential=A%2F20130524%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Signature=0&X-Amz-Date=20130524T000000Z&X-Amz-SignedHeaders=host&X-Amz-Expires=1"
	return httptest.NewRequest("GET", "/b/k?X-Amz-Algorithm="+algorithm+rest, nil)
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	sum := sha256.Sum256([]byte("body"))
	hashed := hex.EncodeToString(sum[:])
	for name, c := range map[string]struct {
		request func() *http.Request
		want    string
	}{
		"not signed": {func() *http.Request { return httptest.NewRequest("GET", "/", nil) }, "AccessDenied"},
		"SigV2":      {func() *http.Request { return withHeader("Authorization", "AWS AKIA:frJIUN8DYpKDtOLCwo//yllqDzg=") }, "InvalidRequest"},
		"presigned SigV2": {func() *http.Request {
			return httptest.NewRequest("GET", "/b/k?AWSAccessKeyId=A&Signature=x&Expires=1", nil)
		}, "InvalidRequest"},
		"presigned ECDSA":  {func() *http.Request { return presignedBy("AWS4-ECDSA-P256-SHA256") }, "AuthorizationQueryParametersError"},
		"presigned SHA-1":  {func() *http.Request { return presignedBy("AWS4-HMAC-SHA1") }, "AuthorizationQueryParametersError"},
		"another scheme":   {func() *http.Request { return withHeader("Authorization", "Bearer sk_live_x") }, "InvalidArgument"},
		"no parts":         {func() *http.Request { return withHeader("Authorization", algorithm+" ") }, "AuthorizationHeaderMalformed"},
		"body is another":  {func() *http.Request { return signed("PUT", "/b/k", hashed, nil, "bodx") }, "XAmzContentSHA256Mismatch"},
		"bad payload hash": {func() *http.Request { return signed("PUT", "/b/k", "x", nil, "body") }, "InvalidArgument"},
		"ECDSA": {func() *http.Request {
			return signed("PUT", "/b/k", "STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD", nil, "body")
		}, "NotImplemented"},
		"wrong MD5": {func() *http.Request {
			return signed("PUT", "/b/k", hashed, map[string]string{"Content-Md5": "1B2M2Y8AsgTpgAmY7PhCfg=="}, "body")
		}, "BadDigest"},
		"malformed MD5": {func() *http.Request {
			return signed("PUT", "/b/k", hashed, map[string]string{"Content-Md5": "x"}, "body")
		}, "InvalidDigest"},
		"two checksums": {func() *http.Request {
			return signed("PUT", "/b/k", hashed, map[string]string{"X-Amz-Checksum-Crc32": "AAAAAA==", "X-Amz-Checksum-Crc32c": "AAAAAA=="}, "body")
		}, "InvalidRequest"},
		"unsigned header": {func() *http.Request {
			r := signed("PUT", "/b/k", hashed, nil, "body")
			r.Header.Set("X-Amz-Meta-Added", "later")
			return r
		}, "AccessDenied"},
		"another key": {func() *http.Request {
			r := signed("PUT", "/b/k", hashed, nil, "body")
			r.URL.Path = "/b/other"
			return r
		}, "SignatureDoesNotMatch"},
		"another method": {func() *http.Request {
			r := signed("GET", "/b/k", hashed, nil, "body")
			r.Method = "DELETE"
			return r
		}, "SignatureDoesNotMatch"},
		"added parameter": {func() *http.Request {
			r := signed("GET", "/b/k?a=1", hashed, nil, "body")
			r.URL.RawQuery += "&versionId=2"
			return r
		}, "SignatureDoesNotMatch"},
		"another host": {func() *http.Request {
			r := signed("GET", "/b/k", hashed, nil, "body")
			r.Host = "other.example.com"
			return r
		}, "SignatureDoesNotMatch"},
		"session token": {func() *http.Request {
			return signed("GET", "/", hashed, map[string]string{"X-Amz-Security-Token": "x"}, "body")
		}, "InvalidToken"},
		"too late": {func() *http.Request {
			return signed("GET", "/", hashed, map[string]string{"X-Amz-Date": exampleTime().Add(-MaxSkew - time.Second).Format(timeFormat)}, "body")
		}, "RequestTimeTooSkewed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := c.request()
			if name == "too late" {
				q, err := parseRequest(r)
				if err == nil {
					err = q.Verify(exampleSecret, exampleRegion, exampleTime())
				}
				if got := codeOf(err); got != c.want {
					t.Errorf("got %s, want %s", got, c.want)
				}
				return
			}
			if _, err := read(t, r); codeOf(err) != c.want {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func withHeader(name, value string) *http.Request {
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set(name, value)
	return r
}

// TestHeaderSpaces: the canonical text of a header has spaces and tabs collapsed, and other white space as it was sent.
func TestHeaderSpaces(t *testing.T) {
	for sent, want := range map[string]string{
		" a  b\t c ":          "a b c",
		"10.11\u202fPM":       "10.11\u202fPM",
		"\u3000x\u3000\u3000": "\u3000x\u3000\u3000",
		"a\u00a0 \u2003b":     "a\u00a0 \u2003b",
	} {
		r := &Request{http: withHeader("X-Amz-Meta-T", sent)}
		if got := r.headerText("x-amz-meta-t"); got != want {
			t.Errorf("%q: %q", sent, got)
		}
	}
}

// TestPresignedTime checks that a presigned URL is valid to its last second.
func TestPresignedTime(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest("GET", "http://s3.example.com/b/a%2Bb%20c?x=%20+&X-Amz-Expires=60", nil)
	presignForTest(r, exampleKey, exampleSecret, exampleTime())
	q, err := parseRequest(r)
	if err != nil {
		t.Fatal(err)
	}
	for after, want := range map[time.Duration]string{0: "<nil>", time.Minute: "<nil>", time.Minute + time.Second: "AccessDenied", -time.Hour: "AccessDenied"} {
		if got := codeOf(q.Verify(exampleSecret, exampleRegion, exampleTime().Add(after))); got != want {
			t.Errorf("after %s: %s, want %s", after, got, want)
		}
	}
	r.Header.Set("X-Amz-Acl", "public-read")
	if got := codeOf(q.Verify(exampleSecret, exampleRegion, exampleTime())); got != "AccessDenied" {
		t.Errorf("with an unsigned header: %s", got)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("GET", "/b/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=a%2F20130524%2Fus-east-1%2Fs3%2Faws4_request", "", "20130524T000000Z")
	f.Add("PUT", "/b/%2e%2e/k", algorithm+" Credential=a/20130524/us-east-1/s3/aws4_request,SignedHeaders=host,Signature="+emptyHash, "x")
	f.Fuzz(func(t *testing.T, method, target, authorization, date string) {
		r, err := http.NewRequest(method, "http://h"+target, nil)
		if err != nil {
			return
		}
		if authorization != "" {
			r.Header.Set("Authorization", authorization)
		}
		r.Header.Set("X-Amz-Date", date)
		r.Header.Set(contentHashHeader, emptyHash)
		q, err := parseRequest(r)
		if err == nil && q.Verify(exampleSecret, exampleRegion, exampleTime()) == nil {
			t.Error("a request that was not signed is accepted")
		}
	})
}

// FuzzChunks reads bodies that were never signed.
func FuzzChunks(f *testing.F) {
	f.Add([]byte("5;chunk-signature="+emptyHash+"\r\nhello\r\n0;chunk-signature="+emptyHash+"\r\n\r\n"), false)
	f.Add([]byte("0;chunk-signature="+emptyHash+"\r\nx-amz-checksum-crc32c:sOO8/Q==\r\nx-amz-trailer-signature:"+emptyHash+"\r\n\r\n"), true)
	f.Fuzz(func(t *testing.T, text []byte, trailer bool) {
		if payload, err := readExample(t, text, trailer); err == nil {
			t.Errorf("%d bytes that were not signed are accepted", len(payload))
		}
	})
}

// FuzzChangedChunks changes one byte of a signed body: it is refused, or its payload is the signed one. (Whole bodies as
// inputs are too long for the fuzzer.)
func FuzzChangedChunks(f *testing.F) {
	f.Add(uint32(100), byte('b'), false)
	f.Add(uint32(66_700), byte('\n'), true)
	f.Fuzz(func(t *testing.T, at uint32, with byte, trailer bool) {
		text := []byte(chunkExample())
		if trailer {
			text = []byte(trailerExample())
		}
		text[at%uint32(len(text))] = with
		if payload, err := readExample(t, text, trailer); err == nil && string(payload) != strings.Repeat("a", 66560) {
			t.Errorf("%d bytes that were not signed are accepted", len(payload))
		}
	})
}

// readExample reads a body of the example's request.
func readExample(t *testing.T, text []byte, trailer bool) ([]byte, error) {
	t.Helper()
	head := chunkHead
	if trailer {
		head = fmt.Sprintf(trailerHead, 66824)
	}
	r := parseHTTP(t, head)
	r.Body = io.NopCloser(bytes.NewReader(text))
	return read(t, r)
}
