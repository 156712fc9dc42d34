package sigv4

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Verify checks the signature with the secret of the access key, and the request's time and region. It refuses
// headers x-amz-* that are not signed.
func (q *Request) Verify(secret, region string, now time.Time) error {
	for _, check := range []error{q.checkScope(region), q.checkHeaders(), q.checkTime(now)} {
		if check != nil {
			return check
		}
	}
	q.key = signingKey(secret, q.date, q.region)
	if !sameHash(q.sign(q.stringToSign()), q.signature) {
		return q.mismatch().with("CanonicalRequest", q.canonical())
	}
	return nil
}

// mismatch refuses a signature, and says what it should be of.
func (q *Request) mismatch() *Error {
	return refuse("SignatureDoesNotMatch", "The request signature we calculated does not match the signature you provided. Check your key and signing method.").
		with("AWSAccessKeyId", q.AccessKey).with("StringToSign", q.stringToSign()).with("SignatureProvided", q.signature).
		with("StringToSignBytes", fmt.Sprintf("% x", q.stringToSign()))
}

// sameHash compares two hashes in hexadecimal, in constant time.
func sameHash(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

func (q *Request) checkScope(region string) error {
	if day := q.at.Format(dateFormat); q.date != day {
		const message = "Invalid credential date %q. This date is not the same as X-Amz-Date: %q."
		if q.Presigned {
			return refuse("AuthorizationQueryParametersError", message, q.date, day)
		}
		return q.badCredential(message, q.date, day)
	}
	if q.region != region {
		return q.badRegion(region)
	}
	return nil
}

// checkHeaders requires the signature to cover the host and every header x-amz-*.
func (q *Request) checkHeaders() error {
	if !slices.Contains(q.signed, "host") {
		return refuse("AccessDenied", "The header host must be signed")
	}
	var unsigned []string
	for name := range q.http.Header {
		name = strings.ToLower(name)
		if !strings.HasPrefix(name, "x-amz-") {
			continue
		}
		if _, signed := slices.BinarySearch(q.signed, name); !signed {
			unsigned = append(unsigned, name)
		}
	}
	if len(unsigned) > 0 {
		slices.Sort(unsigned)
		return refuse("AccessDenied", "There were headers present in the request which were not signed").with("HeadersNotSigned", strings.Join(unsigned, ", "))
	}
	if q.query.Get("X-Amz-Security-Token") != "" || q.http.Header.Get("X-Amz-Security-Token") != "" {
		return invalidToken()
	}
	return nil
}

// invalidToken refuses temporary credentials, which are not issued here.
func invalidToken() error {
	return refuse("InvalidToken", "The provided token is malformed or otherwise invalid.")
}

func (q *Request) checkTime(now time.Time) error {
	if q.Presigned {
		if now.After(q.at.Add(q.life)) {
			return refuse("AccessDenied", "Request has expired.").with("X-Amz-Expires", strconv.Itoa(int(q.life.Seconds()))).
				with("Expires", q.at.Add(q.life).Format(time.RFC3339)).with("ServerTime", now.UTC().Format(time.RFC3339))
		}
		if now.Before(q.at.Add(-MaxSkew)) {
			return refuse("AccessDenied", "Request is not valid yet.")
		}
		return nil
	}
	if now.Sub(q.at).Abs() > MaxSkew {
		return refuse("RequestTimeTooSkewed", "The difference between the request time and the current time is too large.").
			with("RequestTime", q.at.Format(timeFormat)).with("ServerTime", now.UTC().Format(time.RFC3339)).
			with("MaxAllowedSkewMilliseconds", strconv.FormatInt(MaxSkew.Milliseconds(), 10))
	}
	return nil
}

// signingKey derives the key that signs requests of one day.
func signingKey(secret, date, region string) []byte {
	key := []byte("AWS4" + secret)
	for _, part := range []string{date, region, service, "aws4_request"} {
		key = mac(key, part)
	}
	return key
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

func (q *Request) sign(text string) string { return hex.EncodeToString(mac(q.key, text)) }

func (q *Request) scope() string { return q.date + "/" + q.region + "/" + service + "/aws4_request" }

func (q *Request) stringToSign() string {
	if q.form {
		return q.policy
	}
	return strings.Join([]string{algorithm, q.at.Format(timeFormat), q.scope(), hashOf(q.canonical())}, "\n")
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// canonical returns the canonical form of the request.
func (q *Request) canonical() string {
	var b strings.Builder
	b.WriteString(q.http.Method)
	b.WriteByte('\n')
	escape(&b, q.http.URL.Path, true)
	b.WriteByte('\n')
	b.WriteString(q.canonicalQuery())
	b.WriteByte('\n')
	for _, name := range q.signed {
		b.WriteString(name)
		b.WriteByte(':')
		b.WriteString(q.headerText(name))
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
	b.WriteString(strings.Join(q.signed, ";"))
	b.WriteByte('\n')
	b.WriteString(q.payload)
	return b.String()
}

func (q *Request) canonicalQuery() string {
	var pairs []parameter
	for _, p := range q.query {
		if q.Presigned && p.name == "X-Amz-Signature" {
			continue
		}
		var name, value strings.Builder
		escape(&name, p.name, false)
		escape(&value, p.value, false)
		pairs = append(pairs, parameter{name.String(), value.String()})
	}
	slices.SortFunc(pairs, func(a, b parameter) int {
		if order := strings.Compare(a.name, b.name); order != 0 {
			return order
		}
		return strings.Compare(a.value, b.value)
	})
	var b strings.Builder
	for i, p := range pairs {
		if i > 0 {
			b.WriteByte('&')
		}
		b.WriteString(p.name + "=" + p.value)
	}
	return b.String()
}

// isBlank reports whether a character counts as a space in a header. Other white space of Unicode stays, as clients sign it.
func isBlank(r rune) bool { return r == ' ' || r == '\t' }

// headerText returns the canonical text of a header. net/http keeps some headers outside Header.
func (q *Request) headerText(name string) string {
	switch name {
	case "host":
		return q.http.Host
	case "content-length":
		return strconv.FormatInt(max(q.http.ContentLength, 0), 10)
	case "transfer-encoding":
		return strings.Join(q.http.TransferEncoding, ",")
	}
	values := q.http.Header[http.CanonicalHeaderKey(name)]
	texts := make([]string, len(values))
	for i, value := range values {
		texts[i] = strings.Join(strings.FieldsFunc(value, isBlank), " ")
	}
	return strings.Join(texts, ",")
}

// escape percent-encodes all but the unreserved characters, and optionally the slash.
func escape(b *strings.Builder, text string, path bool) {
	const hexDigits = "0123456789ABCDEF"
	for i := range len(text) {
		c := text[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.', c == '~', path && c == '/':
			b.WriteByte(c)
		default:
			b.WriteByte('%')
			b.WriteByte(hexDigits[c>>4])
			b.WriteByte(hexDigits[c&15])
		}
	}
}
