package objectstore

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"io"
	"strconv"
	"strings"

	"github.com/minio/minio-go/v7"
)

// maxBroken is how often in a row a download may break without having moved.
const maxBroken = 8

// Get implements Store.
func (b *bucket) Get(ctx context.Context, key string, r Range) (*Object, error) {
	if err := b.check("read", key); err != nil {
		return nil, err
	}
	if r.Offset < 0 || r.Length < 0 {
		return nil, b.unsupported("read", key, errors.New("a range has no negative numbers"))
	}
	d := &downloading{bucket: b, ctx: ctx, key: key, at: r.Offset, crc: newCRC()}
	if err := d.open(r.Length); err != nil {
		return nil, err
	}
	return &Object{Info: d.info, Length: d.end - r.Offset, ReadCloser: d}, nil
}

// downloading is the reader of an object, over one connection after another.
type downloading struct {
	bucket *bucket
	ctx    context.Context
	key    string
	info   Info
	etag   string
	sum    string    // of the whole object; empty where the store lacks it
	crc    hash.Hash // of what was read, nil for a range
	at     int64     // position in the object
	end    int64
	body   io.ReadCloser
	broken int // connections that broke in a row without a byte
	err    error
}

// open requests what is left. The first request, before end is known, is for length
// bytes, all of them if it is 0; it learns what the object is.
func (d *downloading) open(length int64) error {
	return d.bucket.do(d.ctx, "read", d.key, func(ctx context.Context) error {
		opts := minio.GetObjectOptions{}
		ranged := d.etag != "" || d.at > 0 || length > 0
		if ranged {
			opts.Set("Range", rangeHeader(d.at, length))
		}
		if d.etag != "" { // the same object as before
			opts.Set("If-Match", `"`+d.etag+`"`)
		}
		body, info, header, err := d.bucket.core.GetObject(ctx, d.bucket.name, d.bucket.object(d.key), opts)
		if answered(err).Code == minio.PreconditionFailed {
			return fmt.Errorf("%w: it was exchanged while it was read", ErrCorrupt)
		}
		if err != nil {
			return err
		}
		if err := d.begin(info, ranged, header.Get("Content-Range"), length); err != nil {
			return errors.Join(err, body.Close())
		}
		d.body = body
		return nil
	})
}

// rangeHeader asks for length bytes from at on, for all if length is 0.
func rangeHeader(at, length int64) string {
	if length == 0 {
		return fmt.Sprintf("bytes=%d-", at)
	}
	return fmt.Sprintf("bytes=%d-%d", at, at+length-1)
}

// begin notes what the first answer says, and checks that the answer has what was
// wanted.
func (d *downloading) begin(info minio.ObjectInfo, ranged bool, contentRange string, length int64) error {
	total := info.Size
	if ranged {
		first, size, err := parseContentRange(contentRange)
		if err != nil || first != d.at {
			return fmt.Errorf("%w: it does not answer the range from %d on but %q", ErrUnsupported, d.at, contentRange)
		}
		total = size
	}
	if d.etag != "" {
		return nil
	}
	n, err := Range{d.at, length}.within(total)
	if err != nil {
		return err
	}
	if d.at > 0 || n < total {
		d.crc = nil
	}
	d.end = d.at + n
	d.etag = info.ETag
	d.sum = info.Metadata.Get("X-Amz-Meta-" + crcHeader)
	d.info = describeObject(d.key, info)
	d.info.Size = total
	return nil
}

// parseContentRange reads "bytes 5-9/100".
func parseContentRange(s string) (first, size int64, err error) {
	bounds, total, ok := strings.Cut(strings.TrimPrefix(s, "bytes "), "/")
	from, _, ok2 := strings.Cut(bounds, "-")
	first, err = strconv.ParseInt(from, 10, 64)
	size, err2 := strconv.ParseInt(total, 10, 64)
	if !ok || !ok2 {
		err = errors.New("malformed")
	}
	return first, size, errors.Join(err, err2)
}

// Read implements io.Reader.
func (d *downloading) Read(p []byte) (int, error) {
	if d.err != nil {
		return 0, d.err
	}
	if d.at == d.end {
		d.err = d.verify()
		return 0, d.err
	}
	n, err := d.body.Read(p[:min(int64(len(p)), d.end-d.at)])
	d.at += int64(n)
	if d.crc != nil {
		d.crc.Write(p[:n])
	}
	switch {
	case n > 0:
		d.broken = 0
		return n, nil // an error comes again
	case err != nil:
		d.err = d.resume(err)
	}
	return 0, d.err
}

// resume opens another connection after one that ended early.
func (d *downloading) resume(cause error) error {
	d.broken++
	if d.broken > maxBroken || d.ctx.Err() != nil || d.etag == "" {
		e := d.bucket.classify(d.ctx, "read", d.key, cause, &answer{})
		e.Detail = fmt.Sprintf("the connection broke at byte %d of %d: %s", d.at, d.info.Size, cause)
		return e
	}
	_ = d.body.Close()
	return d.open(d.end - d.at)
}

// verify compares the whole object with its checksum.
func (d *downloading) verify() error {
	if d.crc == nil || d.sum == "" || encodeCRC(d.crc) == d.sum {
		return io.EOF
	}
	return &Error{
		Act: "read", Key: d.key, Store: d.bucket.String(), Kind: ErrCorrupt,
		Detail: "its checksum is not the one that was stored with it",
	}
}

// Close implements io.Closer.
func (d *downloading) Close() error { return d.body.Close() }
