package client

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"maps"
	"net/http"
	"net/url"

	"holdfast/server/api/wire"
)

// Upload is an object to upload.
type Upload struct {
	Key  string
	Body io.Reader
	// Size is the length of Body in bytes, -1 if unknown.
	Size        int64
	ContentType string // application/octet-stream when empty
	// IfAbsent makes the upload fail with CodeConflict if the object exists.
	IfAbsent bool
	// SHA256 is the expected SHA-256 of Body, in base64. The appliance checks
	// it and stores it.
	SHA256 string
	// Metadata is the user's, by name in lower case. CacheControl and
	// ContentDisposition are those of downloads.
	Metadata, Tags                   map[string]string
	CacheControl, ContentDisposition string
}

// ErrDamaged means that the bytes received differ from those sent.
var ErrDamaged = errors.New("the bytes that arrived are not those that were sent")

// ObjectOptions select objects of a bucket.
type ObjectOptions struct {
	ListOptions
	Prefix string // what their keys begin with
	// Delimiter ends a folder name, usually a slash. With it the list is one
	// level deep, in key order; without it, it has all objects.
	Delimiter string
	Order     wire.ObjectOrder // without a delimiter; "" is wire.ByNewest
}

// ObjectPage is a page of objects and, with a delimiter, of folders.
type ObjectPage struct {
	Page[wire.Object]
	Folders []string // each ends with the delimiter
}

// ListObjects returns a page of a bucket's objects.
func (c *Client) ListObjects(ctx context.Context, bucket string, o ObjectOptions) (ObjectPage, error) {
	query := o.query()
	if o.Prefix != "" {
		query.Set("prefix", o.Prefix)
	}
	if o.Delimiter != "" {
		query.Set("delimiter", o.Delimiter)
	}
	if o.Order != "" {
		query.Set("order", string(o.Order))
	}
	items, m, err := call[[]wire.Object](ctx, c, "GET", path("buckets", bucket, "objects"), query, nil)
	return ObjectPage{Page: pageOf(items, m), Folders: m.CommonPrefixes}, err
}

// Objects iterates over all objects of a bucket whose keys begin with prefix,
// in key order, which finds those that are replaced meanwhile too.
func (c *Client) Objects(ctx context.Context, bucket, prefix string) iter.Seq2[wire.Object, error] {
	return All(ctx, func(ctx context.Context, o ListOptions) (Page[wire.Object], error) {
		page, err := c.ListObjects(ctx, bucket, ObjectOptions{ListOptions: o, Prefix: prefix, Order: wire.ByKey})
		return page.Page, err
	})
}

// Entry is an object, or a folder of objects.
type Entry struct {
	Name   string       // the whole key; a folder's ends with a slash
	Object *wire.Object // nil for a folder
}

// Entries iterates over the objects and folders whose keys begin with prefix,
// up to the next slash.
func (c *Client) Entries(ctx context.Context, bucket, prefix string) iter.Seq2[Entry, error] {
	return All(ctx, func(ctx context.Context, o ListOptions) (Page[Entry], error) {
		page, err := c.ListObjects(ctx, bucket, ObjectOptions{ListOptions: o, Prefix: prefix, Delimiter: "/"})
		entries := Page[Entry]{Next: page.Next}
		for _, folder := range page.Folders {
			entries.Items = append(entries.Items, Entry{Name: folder})
		}
		for _, object := range page.Items {
			entries.Items = append(entries.Items, Entry{object.Key, &object})
		}
		return entries, err
	})
}

// UploadObject streams an object into a bucket and compares the stored checksum
// with that of the bytes sent. ErrDamaged means that the stored object is not
// the one sent. ErrChanged means that Body does not have the length Size;
// nothing was stored.
func (c *Client) UploadObject(ctx context.Context, bucket string, up Upload) (wire.Object, error) {
	body := &uploadBody{up: up, sum: NewCRC32C()}
	r := Request{
		Method: http.MethodPost, Path: path("buckets", bucket, "objects"), Query: url.Values{"key": {up.Key}},
		Body: body, Size: up.Size, ContentType: up.ContentType,
		// The server can refuse before the body is sent.
		Header: http.Header{"Expect": {"100-continue"}},
	}
	maps.Copy(r.Header, idempotencyHeader(ctx, r.Method))
	if r.ContentType == "" {
		r.ContentType = "application/octet-stream"
	}
	if up.IfAbsent {
		r.Header.Set("If-None-Match", "*")
	}
	if up.SHA256 != "" {
		r.Header.Set("X-Checksum-SHA256", up.SHA256)
	}
	for name, value := range up.Metadata {
		r.Header.Set("X-Object-Meta-"+name, value)
	}
	tags := url.Values{}
	for key, value := range up.Tags {
		tags.Set(key, value)
	}
	for name, value := range map[string]string{
		"X-Object-Tags": tags.Encode(), "Cache-Control": up.CacheControl, "Content-Disposition": up.ContentDisposition,
	} {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	object, _, err := send[wire.Object](ctx, c, r)
	if local, ok := errors.AsType[*bodyError](err); ok {
		err = fmt.Errorf("upload %s: %w", up.Key, local.error)
	}
	if err == nil && object.ChecksumCRC32C != body.sum.Text() {
		err = fmt.Errorf("upload %s: %w", up.Key, ErrDamaged)
	}
	return object, err
}

// uploadBody checksums what is sent. If the length is known, it hands out the
// last bytes only once it knows that no more follow: the appliance takes them
// as the whole object.
type uploadBody struct {
	up    Upload
	sum   *CRC32C
	n     int64
	ended error // the error with which Read ended
}

// bodyError is an error from reading the body, as opposed to a connection
// error.
type bodyError struct{ error }

// Read implements io.Reader. net/http calls it once more after the last bytes,
// when the response may have arrived: by then the body belongs to the caller
// again.
func (b *uploadBody) Read(p []byte) (n int, err error) {
	if b.ended == nil {
		n, b.ended = b.read(p)
	}
	return n, b.ended
}

func (b *uploadBody) read(p []byte) (int, error) {
	n, err := b.up.Body.Read(p)
	b.n += int64(n)
	if err == nil && b.n == b.up.Size {
		var more [1]byte
		m := 0
		m, err = io.ReadFull(b.up.Body, more[:])
		b.n += int64(m)
	}
	if b.up.Size >= 0 && (b.n > b.up.Size || err == io.EOF && b.n < b.up.Size) {
		return 0, &bodyError{ErrChanged}
	}
	_, _ = b.sum.Write(p[:n]) // never fails
	if err != nil && err != io.EOF {
		err = &bodyError{err}
	}
	return n, err
}

// GetObject returns an object's record, or that of its version, which is "" for
// the current one.
func (c *Client) GetObject(ctx context.Context, bucket, key, version string) (wire.Object, error) {
	object, _, err := call[wire.Object](ctx, c, "GET", path("buckets", bucket, "objects", key), versionQuery(version), nil)
	return object, err
}

// UpdateObject changes what is stored with a version of an object, "" for the
// current one.
func (c *Client) UpdateObject(ctx context.Context, bucket, key, version string, in wire.UpdateObject) (wire.Object, error) {
	object, _, err := call[wire.Object](ctx, c, "PATCH", path("buckets", bucket, "objects", key), versionQuery(version), in)
	return object, err
}

// DeleteObject deletes an object; with a version, it removes that version for
// good.
func (c *Client) DeleteObject(ctx context.Context, bucket, key, version string) (wire.DeletedObject, error) {
	deleted, _, err := call[wire.DeletedObject](ctx, c, "DELETE", path("buckets", bucket, "objects", key), versionQuery(version), nil)
	return deleted, err
}

// DeleteObjectByQuery is DeleteObject with the key in the query, where a proxy
// does not rewrite it.
func (c *Client) DeleteObjectByQuery(ctx context.Context, bucket, key, version string) (wire.DeletedObject, error) {
	query := versionQuery(version)
	query.Set("key", key)
	deleted, _, err := call[wire.DeletedObject](ctx, c, "DELETE", path("buckets", bucket, "objects"), query, nil)
	return deleted, err
}

// CopyObject makes an object in the bucket of another one, or of an earlier
// version. With ifAbsent it fails with CodeConflict if the object exists.
func (c *Client) CopyObject(ctx context.Context, bucket string, in wire.CopyObject, ifAbsent bool) (wire.Object, error) {
	if ifAbsent {
		ctx = context.WithValue(ctx, ifNoneMatch{}, true)
	}
	return one[wire.Object](ctx, c, "POST", path("buckets", bucket, "copy-object"), in)
}

// CreateUploadLink makes a link by which its holder, such as a browser, uploads
// into a bucket without a key.
func (c *Client) CreateUploadLink(ctx context.Context, bucket string, in wire.CreateUploadLink) (wire.UploadLink, error) {
	return one[wire.UploadLink](ctx, c, "POST", path("buckets", bucket, "upload-links"), in)
}

// CreateDownloadLink makes a link by which its holder downloads an object
// without a key.
func (c *Client) CreateDownloadLink(ctx context.Context, bucket string, in wire.CreateDownloadLink) (wire.DownloadLink, error) {
	return one[wire.DownloadLink](ctx, c, "POST", path("buckets", bucket, "download-links"), in)
}

// VersionOptions select versions of objects.
type VersionOptions struct {
	ListOptions
	Prefix string // what their keys begin with
}

// ListVersions returns a page of a bucket's versions, in the order of their
// keys, the newest of each first.
func (c *Client) ListVersions(ctx context.Context, bucket string, o VersionOptions) (Page[wire.ObjectVersion], error) {
	return list[wire.ObjectVersion](ctx, c, path("buckets", bucket, "versions"), setTexts(o.query(), map[string]string{"prefix": o.Prefix}))
}

// Versions iterates over all versions of a bucket's objects whose keys begin
// with prefix.
func (c *Client) Versions(ctx context.Context, bucket, prefix string) iter.Seq2[wire.ObjectVersion, error] {
	return All(ctx, func(ctx context.Context, o ListOptions) (Page[wire.ObjectVersion], error) {
		return c.ListVersions(ctx, bucket, VersionOptions{o, prefix})
	})
}

func versionQuery(version string) url.Values {
	return setTexts(url.Values{}, map[string]string{"version_id": version})
}

// CRC32C computes the checksum that the API uses.
type CRC32C struct{ sum uint32 }

// NewCRC32C returns the checksum of no bytes.
func NewCRC32C() *CRC32C { return &CRC32C{} }

// Write implements io.Writer.
func (s *CRC32C) Write(p []byte) (int, error) {
	s.sum = crc32.Update(s.sum, crc32.MakeTable(crc32.Castagnoli), p)
	return len(p), nil
}

// Text returns the checksum in the format of Object.ChecksumCRC32C.
func (s *CRC32C) Text() string {
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, s.sum))
}
