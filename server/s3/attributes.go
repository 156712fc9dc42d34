package s3

import (
	"net/http"
	"strconv"
	"strings"

	"holdfast/engine/model"
	"holdfast/server/s3/sigv4"
)

const (
	metaPrefix = "X-Amz-Meta-"
	// redirectHeader is where a website redirects requests for the object.
	redirectHeader = "X-Amz-Website-Redirect-Location"
	// defaultContentType is the type of objects without one.
	defaultContentType = "binary/octet-stream"
	// folderContentType is the type of objects without one whose key ends in /, as tools mark empty folders.
	folderContentType = "application/x-directory"
)

// attributesOf reads the content type and the attributes that a request stores with the object of that key.
func attributesOf(h http.Header, key string) (contentType string, a *model.Attributes, err error) {
	a = &model.Attributes{}
	for name, to := range storedHeaders(a) {
		if *to = h.Get(name); !model.IsStorable(*to, model.MaxStoredHeader) {
			return "", nil, fail("InvalidArgument", "The header %s cannot be stored: it must be text of at most %d bytes", name, model.MaxStoredHeader)
		}
	}
	if to := a.WebsiteRedirect; to != "" && !strings.HasPrefix(to, "/") && !strings.HasPrefix(to, "http://") && !strings.HasPrefix(to, "https://") {
		return "", nil, fail("InvalidRedirectLocation", "The website redirect location must have a prefix of 'http://' or 'https://' or '/'.")
	}
	a.ContentEncoding = withoutChunked(a.ContentEncoding)
	for name, values := range h {
		name, ok := strings.CutPrefix(name, metaPrefix)
		if !ok {
			continue
		}
		value := strings.Join(values, ",")
		if name == "" || !model.IsStorable(value, len(value)) {
			return "", nil, fail("InvalidArgument", "User metadata must have names, and values that are text in UTF-8")
		}
		if a.Metadata == nil {
			a.Metadata = map[string]string{}
		}
		a.Metadata[strings.ToLower(name)] = value
	}
	if err := checkMetadataSize(a.Metadata); err != nil {
		return "", nil, err
	}
	contentType = h.Get("Content-Type")
	if !model.IsStorable(contentType, model.MaxStoredHeader) {
		return "", nil, fail("InvalidArgument", "The Content-Type cannot be stored")
	}
	if contentType == "" {
		contentType = defaultContentType
		if strings.HasSuffix(key, "/") {
			contentType = folderContentType
		}
	}
	return contentType, a, nil
}

// checkMetadataSize refuses more user metadata than is stored.
func checkMetadataSize(metadata map[string]string) error {
	size := 0
	for name, value := range metadata {
		size += len(name) + len(value)
	}
	if size <= model.MaxMetadata {
		return nil
	}
	return fail("MetadataTooLarge", "Your metadata headers exceed the maximum allowed metadata size").
		with("Size", strconv.Itoa(size)).with("MaxSizeAllowed", strconv.Itoa(model.MaxMetadata))
}

// storedHeaders returns the headers that are stored with an object, and where.
func storedHeaders(a *model.Attributes) map[string]*string {
	return map[string]*string{
		"Cache-Control": &a.CacheControl, "Content-Disposition": &a.ContentDisposition, "Content-Encoding": &a.ContentEncoding,
		"Content-Language": &a.ContentLanguage, "Expires": &a.Expires, redirectHeader: &a.WebsiteRedirect,
	}
}

// withoutChunked removes aws-chunked, which describes the request, from a Content-Encoding.
func withoutChunked(encoding string) string {
	var kept []string
	for part := range strings.SplitSeq(encoding, ",") {
		if part = strings.TrimSpace(part); part != "" && !strings.EqualFold(part, "aws-chunked") {
			kept = append(kept, part)
		}
	}
	return strings.Join(kept, ",")
}

// describe sets the headers of an object.
func describe(h http.Header, o model.Object, withChecksum bool) {
	h.Set("Content-Type", o.ContentType)
	h.Set("Etag", quoted(o.EntityTag()))
	h.Set("X-Amz-Storage-Class", "STANDARD")
	// Content that a browser could execute has no rights in this origin.
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	describeLock(h, o)
	if len(o.Tags) > 0 {
		h.Set("X-Amz-Tagging-Count", strconv.Itoa(len(o.Tags)))
	}
	a := o.Attributes
	if a == nil {
		return
	}
	for name, from := range storedHeaders(a) {
		if *from != "" {
			h.Set(name, *from)
		}
	}
	for name, value := range a.Metadata {
		h["x-amz-meta-"+name] = []string{value} // clients expect lower case
	}
	if c := checksumOf(o); withChecksum && c.Value != "" {
		h.Set(sigv4.HeaderOf(c.Algorithm), c.Value)
		h.Set("X-Amz-Checksum-Type", checksumType(o))
	}
}

// checksumOf returns the stored checksum of an object, zero if it has none.
func checksumOf(o model.Object) sigv4.Checksum {
	if o.Attributes == nil || o.Attributes.Checksum == "" {
		return sigv4.Checksum{}
	}
	return sigv4.Checksum{Algorithm: o.Attributes.ChecksumAlgorithm, Value: o.Attributes.Checksum}
}

// checksumType returns whether the checksum is of the whole content or of the checksums of its parts.
func checksumType(o model.Object) string {
	if strings.Contains(o.Attributes.Checksum, "-") {
		return composite
	}
	return fullObject
}

const (
	composite  = "COMPOSITE"
	fullObject = "FULL_OBJECT"
)
