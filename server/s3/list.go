package s3

import (
	"encoding/base64"
	"encoding/xml"
	"strconv"
	"strings"

	"holdfast/engine/model"
)

// maxKeys is the maximum number of entries in a list.
const maxKeys = 1000

type listedObject struct {
	Key               string
	LastModified      string
	ETag              string
	ChecksumAlgorithm string `xml:",omitempty"`
	ChecksumType      string `xml:",omitempty"`
	Size              int64
	StorageClass      string
	Owner             *owner `xml:",omitempty"`
}

type commonPrefix struct{ Prefix string }

// listing is the response to a list of either version; empty fields of the other one are left out.
type listing struct {
	XMLName               xml.Name `xml:"ListBucketResult"`
	Xmlns                 string   `xml:"xmlns,attr"`
	Name                  string
	Prefix                string
	Marker                *string
	StartAfter            string `xml:",omitempty"`
	ContinuationToken     string `xml:",omitempty"`
	NextContinuationToken string `xml:",omitempty"`
	NextMarker            string `xml:",omitempty"`
	KeyCount              *int
	MaxKeys               int
	Delimiter             string `xml:",omitempty"`
	EncodingType          string `xml:",omitempty"`
	IsTruncated           bool
	Contents              []listedObject
	CommonPrefixes        []commonPrefix
}

// listObjects serves both versions of the list.
func (q *request) listObjects() error {
	b, err := q.findBucket()
	if err != nil {
		return err
	}
	v2 := q.query.Get("list-type") == "2"
	limit, err := q.limit("max-keys")
	if err != nil {
		return err
	}
	encode, err := q.encoding()
	if err != nil {
		return err
	}
	after, err := q.after(v2)
	if err != nil {
		return err
	}
	answer := listing{
		Xmlns: namespace, Name: b.Name, Prefix: encode(q.query.Get("prefix")), Delimiter: encode(q.query.Get("delimiter")),
		MaxKeys: limit, EncodingType: q.query.Get("encoding-type"),
	}
	if limit > 0 {
		if err := q.fill(&answer, b, after, limit, encode, q.signature != nil && (!v2 || q.query.Get("fetch-owner") == "true")); err != nil {
			return err
		}
	}
	if v2 {
		count := len(answer.Contents) + len(answer.CommonPrefixes)
		answer.KeyCount, answer.NextMarker = &count, ""
		answer.StartAfter, answer.ContinuationToken = encode(q.query.Get("start-after")), q.query.Get("continuation-token")
	} else {
		marker := encode(q.query.Get("marker"))
		answer.Marker, answer.NextContinuationToken = &marker, ""
	}
	return writeXML(q.Exchange, answer)
}

// fill adds the entries to a list.
func (q *request) fill(answer *listing, b model.Bucket, after string, limit int, encode func(string) string, owned bool) error {
	found, err := q.engine.Objects.ObjectKeys(q.Call, b.ID, q.query.Get("prefix"), q.query.Get("delimiter"), after, limit)
	if err != nil {
		return err
	}
	for _, o := range found.Objects {
		entry := listedObject{
			Key: encode(o.Key), LastModified: timestamp(o.LastModified), ETag: quoted(o.EntityTag()), Size: o.SizeBytes, StorageClass: "STANDARD",
		}
		if c := checksumOf(o); c.Value != "" {
			entry.ChecksumAlgorithm, entry.ChecksumType = c.Algorithm, checksumType(o)
		}
		if owned {
			entry.Owner = q.owner()
		}
		answer.Contents = append(answer.Contents, entry)
	}
	for _, prefix := range found.Prefixes {
		answer.CommonPrefixes = append(answer.CommonPrefixes, commonPrefix{encode(prefix)})
	}
	if answer.IsTruncated = found.More; found.More {
		answer.NextMarker = encode(found.Last)
		answer.NextContinuationToken = base64.RawURLEncoding.EncodeToString([]byte(found.Last))
	}
	return nil
}

// limit returns the number in a parameter, at most maxKeys.
func (q *request) limit(name string) (int, error) {
	n, err := number(name, q.query.Get(name), maxKeys)
	return min(n, maxKeys), err
}

// number reads a number that a request may have.
func number(name, text string, otherwise int) (int, error) {
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 {
		return 0, outOfRange(name, text)
	}
	return int(n), nil
}

// outOfRange refuses a number.
func outOfRange(name, text string) error {
	if n, err := strconv.ParseInt(text, 10, 32); err == nil && n < 0 {
		return invalidArgument(name, text, "Argument %s must be an integer between 0 and 2147483647", text)
	}
	return invalidArgument(name, text, "Provided %s not an integer or within integer range", text)
}

// encoding returns the function that encodes keys in the response.
func (q *request) encoding() (func(string) string, error) {
	switch q.query.Get("encoding-type") {
	case "":
		return func(s string) string { return s }, nil
	case "url":
		return urlEncode, nil
	}
	return nil, invalidArgument("encoding-type", q.query.Get("encoding-type"), "Invalid Encoding Method specified in Request")
}

// urlEncode percent-encodes a key but for its slashes.
func urlEncode(key string) string {
	const hexDigits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(key) {
		c := key[i]
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-_.*/", c) >= 0 {
			b.WriteByte(c)
			continue
		}
		b.Write([]byte{'%', hexDigits[c>>4], hexDigits[c&15]})
	}
	return b.String()
}

// after returns the key after which a list starts.
func (q *request) after(v2 bool) (string, error) {
	if !v2 {
		return q.query.Get("marker"), nil
	}
	if !q.query.Has("continuation-token") {
		return q.query.Get("start-after"), nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(q.query.Get("continuation-token"))
	if err != nil || len(raw) == 0 {
		return "", invalidArgument("continuation-token", q.query.Get("continuation-token"), "The continuation token provided is incorrect")
	}
	return string(raw), nil
}

func quoted(etag string) string { return `"` + etag + `"` }
