package sigv4

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// signForTest signs a request in its Authorization header.
func signForTest(r *http.Request, key, secret string) {
	at, _ := time.Parse(timeFormat, r.Header.Get("X-Amz-Date"))
	q := &Request{http: r, date: at.Format(dateFormat), region: exampleRegion, at: at, payload: r.Header.Get(contentHashHeader), signed: []string{"host"}}
	q.query, _ = ParseQuery(r.URL.RawQuery)
	for name := range r.Header {
		q.signed = append(q.signed, strings.ToLower(name))
	}
	slices.Sort(q.signed)
	q.key = signingKey(secret, q.date, q.region)
	r.Header.Set("Authorization", algorithm+" Credential="+key+"/"+q.scope()+", SignedHeaders="+strings.Join(q.signed, ";")+", Signature="+q.sign(q.stringToSign()))
}

// presignForTest signs a request in its query.
func presignForTest(r *http.Request, key, secret string, at time.Time) {
	q := &Request{http: r, date: at.Format(dateFormat), region: exampleRegion, at: at, payload: unsignedPayload, signed: []string{"host"}, Presigned: true}
	r.URL.RawQuery += "&X-Amz-Algorithm=" + algorithm + "&X-Amz-Credential=" + strings.ReplaceAll(key+"/"+q.scope(), "/", "%2F") +
		"&X-Amz-Date=" + at.Format(timeFormat) + "&X-Amz-SignedHeaders=host"
	q.query, _ = ParseQuery(r.URL.RawQuery)
	q.key = signingKey(secret, q.date, q.region)
	r.URL.RawQuery += "&X-Amz-Signature=" + q.sign(q.stringToSign())
}

// parseRequest reads the authorization of a request.
func parseRequest(r *http.Request) (*Request, error) {
	query, err := ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, err
	}
	return Parse(r, query)
}
