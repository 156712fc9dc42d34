package objectstore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/minio/minio-go/v7"
)

// List implements Store. After an error of a page it goes on after the last key.
func (b *bucket) List(ctx context.Context, prefix, after string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		err := listable(prefix)
		if err != nil {
			yield(Info{}, b.unsupported("list", prefix, err))
			return
		}
		l := &listing{b, prefix, after, yield, false}
		if err := b.list(ctx, l); err != nil && !l.stopped {
			yield(Info{}, err)
		}
	}
}

// list repeats the listing until it reaches the end, with new patience for each part
// that brought a key.
func (b *bucket) list(ctx context.Context, l *listing) error {
	for {
		before := l.after
		err := b.do(ctx, "list", l.prefix, l.run)
		known := (*Error)(nil)
		if l.stopped || err == nil || l.after == before || !errors.As(err, &known) || !known.retry {
			return err
		}
	}
}

type listing struct {
	bucket  *bucket
	prefix  string
	after   string // the last key
	yield   func(Info, error) bool
	stopped bool
}

// run lists from after on.
func (l *listing) run(ctx context.Context) error {
	opts := minio.ListObjectsOptions{Prefix: l.bucket.object(l.prefix), Recursive: true, FetchOwner: new(bool)}
	if l.after != "" {
		opts.StartAfter = l.bucket.object(l.after)
	}
	for o := range l.bucket.core.ListObjectsIter(ctx, l.bucket.name, opts) {
		if o.Err != nil {
			return o.Err
		}
		if err := l.object(o); err != nil || l.stopped {
			return err
		}
	}
	return ctx.Err() // the iterator ends without a word
}

// object yields one object. What is no key of ours is left out: some stores show
// directories as objects.
func (l *listing) object(o minio.ObjectInfo) error {
	key, ours := strings.CutPrefix(o.Key, l.bucket.prefix)
	if !ours || !strings.HasPrefix(key, l.prefix) {
		return fmt.Errorf("%w: the store lists %q for %q", ErrCorrupt, o.Key, l.bucket.object(l.prefix))
	}
	if checkKey(key) != nil {
		return nil
	}
	if key <= l.after {
		return fmt.Errorf("%w: the store lists %q after %q", ErrCorrupt, key, l.after)
	}
	l.after = key
	l.stopped = !l.yield(Info{Key: key, Size: o.Size, Modified: o.LastModified}, nil)
	return nil
}
