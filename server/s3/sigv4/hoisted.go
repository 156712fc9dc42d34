package sigv4

import (
	"encoding/base64"
	"net/http"
	"strings"
)

// Hoisted returns the headers x-amz-* that parameters of a presigned request stand for: the SDKs move headers there when
// they presign, and the signature covers them. It is nil for requests that are not presigned. Nothing is verified.
func Hoisted(r *http.Request, query Query) http.Header {
	if len(r.Header["Authorization"]) > 0 || !query.Has("X-Amz-Algorithm") {
		return nil
	}
	hoisted := http.Header{}
	for _, p := range query {
		if isHoisted(strings.ToLower(p.name), p.value) {
			hoisted.Add(p.name, strings.Trim(p.value, " \t"))
		}
	}
	return hoisted
}

// isHoisted reports whether a parameter, its name in lower case, stands for a header.
func isHoisted(name, value string) bool {
	switch name {
	case "x-amz-algorithm", "x-amz-credential", "x-amz-date", "x-amz-expires", "x-amz-signedheaders", "x-amz-signature",
		"x-amz-security-token", "x-amz-content-sha256":
		return false // of the authorization
	case "x-amz-sdk-checksum-algorithm":
		return false // it says what the SDK did, not what whoever has the URL sends; S3 ignores it there
	}
	return strings.HasPrefix(name, "x-amz-") && !isSumOfNothing(name, value)
}

// isSumOfNothing reports whether a parameter is the checksum of an empty payload. The SDK for JavaScript adds that of
// CRC32 to every upload that it presigns, because it does not have the payload yet; S3 does not verify it.
func isSumOfNothing(name, value string) bool {
	algorithm, ok := strings.CutPrefix(name, checksumPrefix)
	h := NewHash(strings.ToUpper(algorithm))
	return ok && h != nil && value == base64.StdEncoding.EncodeToString(h.Sum(nil))
}
