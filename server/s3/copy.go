package s3

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"holdfast/engine/model"
	"holdfast/engine/objects"
	"holdfast/server/s3/sigv4"
)

// copySource opens the object that a request copies, if its conditions hold. The caller closes it.
func (q *request) copySource() (objects.Download, error) {
	text := q.Request.Header.Get("X-Amz-Copy-Source")
	path, version, versioned := strings.Cut(text, "?versionId=")
	if versioned {
		if err := checkVersion(version); err != nil {
			return objects.Download{}, err
		}
	}
	name, key, err := copyName(text, path)
	if err != nil {
		return objects.Download{}, err
	}
	b, err := q.engine.Objects.BucketNamed(q.Call, name)
	if err != nil {
		q.missing = objectName{name, key}
		return objects.Download{}, err
	}
	source, err := q.engine.Objects.ObjectOpen(q.Request.Context(), q.Call, b.ID, key, version)
	if deleted, ok := errors.AsType[*objects.DeletedError](err); ok && versioned {
		return source, fail("InvalidRequest", "The source of a copy request may not specifically refer to a delete marker by version id: %s", deleted.Marker.VersionID())
	}
	if err != nil {
		q.missing = objectName{name, key}
		return source, err
	}
	if b.Versioning != model.VersioningOff {
		q.Header().Set("X-Amz-Copy-Source-Version-Id", source.VersionID())
	}
	if failed := q.failedSource(source.Object); failed != "" {
		source.Content.Close()
		return source, failedCondition(copySourcePrefix + failed)
	}
	return source, nil
}

// copyName returns the bucket and the key that an x-amz-copy-source names.
func copyName(text, path string) (bucket, key string, err error) {
	const name = "x-amz-copy-source"
	path, err = url.PathUnescape(path)
	if err != nil {
		return "", "", invalidArgument(name, text, "Invalid copy source encoding")
	}
	bucket, key, _ = strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if model.ValidateBucketName("name", bucket) != nil {
		return "", "", invalidArgument(name, text, "Invalid copy source bucket name")
	}
	if model.ValidateObjectKey("key", key) != nil {
		return "", "", invalidArgument(name, key, "Invalid copy source object key")
	}
	return bucket, key, nil
}

// copyAlgorithm returns the checksum that a copy gets, "" if it gets that of its source.
func (q *request) copyAlgorithm() (string, error) {
	algorithm := strings.ToUpper(q.Request.Header.Get("X-Amz-Checksum-Algorithm"))
	if algorithm != "" && sigv4.NewHash(algorithm) == nil {
		return "", unknownAlgorithm()
	}
	return algorithm, nil
}

// copySourcePrefix begins the names of the conditions on the source of a copy.
const copySourcePrefix = "x-amz-copy-source-"

// failedSource returns the condition on the source of a copy that does not hold, "" for none. Those on the ETag take
// precedence over those on the time.
func (q *request) failedSource(o model.Object) string {
	get := func(name string) string { return q.Request.Header.Get(copySourcePrefix + name) }
	matches := func(list string) bool {
		for tag := range strings.SplitSeq(list, ",") {
			if tag = strings.Trim(strings.TrimSpace(tag), `"`); tag == "*" || tag == o.EntityTag() {
				return true
			}
		}
		return false
	}
	modified := o.LastModified.Truncate(time.Second)
	if match := get("If-Match"); match != "" {
		if !matches(match) {
			return "If-Match"
		}
	} else if since, err := http.ParseTime(get("If-Unmodified-Since")); err == nil && modified.After(since) {
		return "If-Unmodified-Since"
	}
	if none := get("If-None-Match"); none != "" {
		if matches(none) {
			return "If-None-Match"
		}
	} else if since, err := http.ParseTime(get("If-Modified-Since")); err == nil && !modified.After(since) {
		return "If-Modified-Since"
	}
	return ""
}

func (q *request) copyObject() error {
	b, err := q.findBucket()
	if err != nil {
		return err
	}
	if err := checkKey(q.key); err != nil {
		return err
	}
	algorithm, err := q.copyAlgorithm()
	if err != nil {
		return err
	}
	source, err := q.copySource()
	if err != nil {
		return err
	}
	defer source.Content.Close()
	in := objects.Upload{Bucket: b.ID, Key: q.key, Length: source.SizeBytes}
	if in.IfAbsent, in.IfMatch, err = q.writeConditions(); err != nil {
		return err
	}
	if in.Lock, err = q.lockOf(); err != nil {
		return err
	}
	if in.Tags, err = q.copiedTags(source); err != nil {
		return err
	}
	attributes, err := q.copiedAttributes(&in, source)
	if err != nil {
		return err
	}
	digest := md5.New()
	in.Body = io.TeeReader(source.Content, digest)
	if algorithm == "" && attributes.Checksum == "" {
		algorithm = sigv4.DefaultAlgorithm
	}
	sum := sigv4.NewHash(algorithm)
	if sum != nil {
		in.Body = io.TeeReader(in.Body, sum)
	}
	in.Describe = func(o *model.Object) {
		c := sigv4.Checksum{}
		if sum != nil {
			c = sigv4.Checksum{Algorithm: algorithm, Value: base64.StdEncoding.EncodeToString(sum.Sum(nil))}
		}
		describeUpload(o, attributes, hex.EncodeToString(digest.Sum(nil)), c)
	}
	stored, err := q.engine.Objects.ObjectUpload(q.Request.Context(), q.Call, in)
	if err != nil {
		return q.conditionError(in, err)
	}
	q.describeNewVersion(stored.Object)
	c := checksumOf(stored.Object)
	return writeXML(q.Exchange, copyResult{
		XMLName: xml.Name{Local: "CopyObjectResult"}, Xmlns: namespace, LastModified: timestamp(stored.LastModified),
		ETag: quoted(stored.EntityTag()), checksums: checksumsOf(c.Algorithm, c.Value),
	})
}

type copyResult struct {
	XMLName      xml.Name
	Xmlns        string `xml:"xmlns,attr"`
	LastModified string
	ETag         string
	checksums
}

// copiedAttributes sets the content type of a copy and returns its attributes: those of the source, or of the request.
func (q *request) copiedAttributes(in *objects.Upload, source objects.Download) (*model.Attributes, error) {
	attributes := objects.CopiedAttributes(source.Object)
	algorithm, sum := attributes.ChecksumAlgorithm, attributes.Checksum
	switch directive := q.Request.Header.Get("X-Amz-Metadata-Directive"); directive {
	case "", "COPY":
		if source.Bucket == in.Bucket && source.Key == in.Key && !strings.Contains(q.Request.Header.Get("X-Amz-Copy-Source"), "?versionId=") {
			return nil, fail("InvalidRequest", "This copy request is illegal because it is trying to copy an object to itself without changing the object's metadata, storage class, website redirect location or encryption attributes.")
		}
		if _, _, err := attributesOf(q.Request.Header, q.key); err != nil {
			return nil, err
		}
		in.ContentType, attributes.WebsiteRedirect = source.ContentType, ""
	case "REPLACE":
		var err error
		if in.ContentType, attributes, err = attributesOf(q.Request.Header, q.key); err != nil {
			return nil, err
		}
	default:
		return nil, invalidArgument("x-amz-metadata-directive", directive, "Unknown metadata directive.")
	}
	attributes.ChecksumAlgorithm, attributes.Checksum = algorithm, sum
	return attributes, nil
}

// copiedTags returns the tags of a copy: those of the source, or of the request.
func (q *request) copiedTags(source objects.Download) (map[string]string, error) {
	switch directive := q.Request.Header.Get("X-Amz-Tagging-Directive"); directive {
	case "", "COPY":
		return source.Tags, nil
	case "REPLACE":
		return tagsOf(q.Request.Header)
	default:
		return nil, invalidArgument("x-amz-tagging-directive", directive, "Unknown tagging directive.")
	}
}

// copyRange returns the part of the source that a request copies.
func (q *request) copyRange(source objects.Download) (io.Reader, int64, error) {
	text := q.Request.Header.Get("X-Amz-Copy-Source-Range")
	if text == "" {
		return source.Content, source.SizeBytes, nil
	}
	bounds, ok := strings.CutPrefix(text, "bytes=")
	first, last, dashed := strings.Cut(bounds, "-")
	from, err1 := strconv.ParseInt(first, 10, 64)
	to, err2 := strconv.ParseInt(last, 10, 64)
	if !ok || !dashed || err1 != nil || err2 != nil || from < 0 || from > to {
		return nil, 0, invalidArgument("x-amz-copy-source-range", text, "The x-amz-copy-source-range value must be of the form bytes=first-last where first and last are the zero-based offsets of the first and last bytes to copy")
	}
	if to >= source.SizeBytes {
		return nil, 0, invalidArgument("x-amz-copy-source-range", text, "Range specified is not valid for source object of size: %d", source.SizeBytes)
	}
	return io.NewSectionReader(source.Content, from, to-from+1), to - from + 1, nil
}
