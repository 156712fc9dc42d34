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

// Upload is an object on its way in.
type Upload struct {
	Key  string
	Body io.Reader
	// Size is the length of Body in bytes where it is known, else -1.
	Size        int64
	ContentType string // application/octet-stream when empty
	// IfAbsent refuses to replace an object, with CodeConflict.
	IfAbsent bool
	// SHA256 is what the SHA-256 of Body must be, in base64. The appliance
	// checks it and keeps it.
	SHA256 string
}

// ErrDamaged says that bytes are not those that were sent.
var ErrDamaged = errors.New("the bytes that arrived are not those that were sent")

// ObjectOptions choose objects of a bucket.
type ObjectOptions struct {
	ListOptions
	Prefix string // what their keys begin with
	// Delimiter is what ends a folder, usually a slash. With it the list is one
	// level, in the order of keys; without, all objects, newest first.
	Delimiter string
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
	items, m, err := call[[]wire.Object](ctx, c, "GET", path("buckets", bucket, "objects"), query, nil)
	return ObjectPage{Page: pageOf(items, m), Folders: m.CommonPrefixes}, err
}

// Objects walks all objects of a bucket whose keys begin with prefix, newest
// first.
func (c *Client) Objects(ctx context.Context, bucket, prefix string) iter.Seq2[wire.Object, error] {
	return All(ctx, func(ctx context.Context, o ListOptions) (Page[wire.Object], error) {
		page, err := c.ListObjects(ctx, bucket, ObjectOptions{ListOptions: o, Prefix: prefix})
		return page.Page, err
	})
}

// Entry is an object, or a folder of objects.
type Entry struct {
	Name   string       // the whole key; a folder's ends with a slash
	Object *wire.Object // nil for a folder
}

// Entries walks the objects and folders whose keys begin with prefix, up to
// the next slash.
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

// UploadObject streams an object into a bucket. What arrived is compared with
// what was sent; ErrDamaged says that the object there is not the one meant,
// and ErrChanged, where nothing was stored, that Body is not of its Size.
func (c *Client) UploadObject(ctx context.Context, bucket string, up Upload) (wire.Object, error) {
	body := &uploadBody{up: up, sum: NewCRC32C()}
	r := Request{
		Method: http.MethodPost, Path: path("buckets", bucket, "objects"), Query: url.Values{"key": {up.Key}},
		Body: body, Size: up.Size, ContentType: up.ContentType,
		// A refusal comes before the bytes were sent in vain.
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
	object, _, err := send[wire.Object](ctx, c, r)
	if local, ok := errors.AsType[*bodyError](err); ok {
		err = fmt.Errorf("upload %s: %w", up.Key, local.error)
	}
	if err == nil && object.ChecksumCRC32C != body.sum.Text() {
		err = fmt.Errorf("upload %s: %w", up.Key, ErrDamaged)
	}
	return object, err
}

// uploadBody sums up what is sent. The last bytes of a length that is known
// are given away only when there are no more: an appliance takes them for all.
type uploadBody struct {
	up    Upload
	sum   *CRC32C
	n     int64
	ended error // what Read said at the end
}

// bodyError is what reading a body has failed with: the connection has not.
type bodyError struct{ error }

// Read implements io.Reader. net/http reads once more after the last bytes,
// when the answer to them may be there: by then the body is the caller's again.
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
	_, _ = b.sum.Write(p[:n]) // it cannot fail
	if err != nil && err != io.EOF {
		err = &bodyError{err}
	}
	return n, err
}

// GetObject returns an object's record.
func (c *Client) GetObject(ctx context.Context, bucket, key string) (wire.Object, error) {
	return one[wire.Object](ctx, c, "GET", path("buckets", bucket, "objects", key), nil)
}

// DeleteObject deletes an object.
func (c *Client) DeleteObject(ctx context.Context, bucket, key string) (wire.DeletedObject, error) {
	return one[wire.DeletedObject](ctx, c, "DELETE", path("buckets", bucket, "objects", key), nil)
}

// DeleteObjectByQuery is DeleteObject with the key in the query, where a
// proxy on the way does not change it.
func (c *Client) DeleteObjectByQuery(ctx context.Context, bucket, key string) (wire.DeletedObject, error) {
	deleted, _, err := call[wire.DeletedObject](ctx, c, "DELETE", path("buckets", bucket, "objects"), url.Values{"key": {key}}, nil)
	return deleted, err
}

// CRC32C sums bytes up as the API does.
type CRC32C struct{ sum uint32 }

// NewCRC32C returns the sum of no bytes.
func NewCRC32C() *CRC32C { return &CRC32C{} }

// Write implements io.Writer.
func (s *CRC32C) Write(p []byte) (int, error) {
	s.sum = crc32.Update(s.sum, crc32.MakeTable(crc32.Castagnoli), p)
	return len(p), nil
}

// Text returns the sum as Object.ChecksumCRC32C has it.
func (s *CRC32C) Text() string {
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, s.sum))
}
