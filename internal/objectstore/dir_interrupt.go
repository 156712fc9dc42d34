package objectstore

import (
	"context"
	"io"
	"io/fs"
	"iter"
	"sync"
)

// interruptible is a directory whose calls end with their context, also while the kernel waits for a disk that does not
// answer, as NFS does without limit. The call in the kernel goes on, and nobody waits for it.
type interruptible struct{ directory *directory }

// openInterruptible is openDirectory that ends with ctx.
func openInterruptible(ctx context.Context, root string, o Options) (Store, error) {
	d := &directory{root: root, fs: o.FS, limiter: o.Limiter}
	if _, err := interrupt(ctx, func() (struct{}, error) { return struct{}{}, d.open() }); err != nil {
		return nil, d.fail("open", "", err)
	}
	return &interruptible{d}, nil
}

// interrupt returns what do returns, or the error of ctx as soon as that ends.
func interrupt[T any](ctx context.Context, do func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := do()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// act is interrupt for a call without a result.
func act(ctx context.Context, do func() error) error {
	_, err := interrupt(ctx, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

// Create implements Store.
func (i *interruptible) Create(ctx context.Context, key string, body Body, opts CreateOptions) error {
	b := &endingBody{body: body}
	defer b.end()
	err := act(ctx, func() error { return i.directory.Create(ctx, key, b, opts) })
	return i.directory.fail("create", key, err)
}

// endingBody is a Body that nobody reads after its end: its owner may use the memory again.
type endingBody struct {
	mu   sync.Mutex // held while it is read
	body Body
	over bool
}

func (b *endingBody) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
}

// Size implements Body.
func (b *endingBody) Size() int64 { return b.body.Size() }

// Open implements Body.
func (b *endingBody) Open() (io.ReadCloser, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over {
		return nil, fs.ErrClosed
	}
	r, err := b.body.Open()
	if err != nil {
		return nil, err
	}
	return &endingReader{b, r}, nil
}

type endingReader struct {
	body *endingBody
	io.ReadCloser
}

// Read implements io.Reader.
func (r *endingReader) Read(p []byte) (int, error) {
	r.body.mu.Lock()
	defer r.body.mu.Unlock()
	if r.body.over {
		return 0, fs.ErrClosed
	}
	return r.ReadCloser.Read(p)
}

// Get implements Store.
func (i *interruptible) Get(ctx context.Context, key string, r Range) (*Object, error) {
	o, err := interrupt(ctx, func() (*Object, error) { return i.directory.Get(ctx, key, r) })
	if err != nil {
		return nil, i.directory.fail("read", key, err)
	}
	whole := *o
	whole.ReadCloser = &interruptibleReader{ctx: ctx, from: o.ReadCloser, buffer: make([]byte, min(readAhead, o.Length+1))}
	return &whole, nil
}

// interruptibleReader reads into a buffer of its own, because a read that was given up may still write there.
type interruptibleReader struct {
	ctx    context.Context //nolint:containedctx // of the Get that returned it
	from   io.ReadCloser
	buffer []byte
	left   []byte // of the buffer
	err    error
}

// readAhead is how much is read from a directory at a time.
const readAhead = 256 << 10

// Read implements io.Reader.
func (r *interruptibleReader) Read(p []byte) (int, error) {
	if len(r.left) == 0 && r.err == nil {
		r.fill()
	}
	if len(r.left) == 0 {
		return 0, r.err
	}
	n := copy(p, r.left)
	r.left = r.left[n:]
	return n, nil
}

func (r *interruptibleReader) fill() {
	n, err := interrupt(r.ctx, func() (int, error) { return io.ReadFull(r.from, r.buffer) })
	if err == io.ErrUnexpectedEOF {
		err = io.EOF
	}
	r.left, r.err = r.buffer[:n], err
}

// Close implements io.Closer.
func (r *interruptibleReader) Close() error {
	r.err, r.left = fs.ErrClosed, nil
	return act(r.ctx, r.from.Close)
}

// Stat implements Store.
func (i *interruptible) Stat(ctx context.Context, key string) (Info, error) {
	info, err := interrupt(ctx, func() (Info, error) { return i.directory.Stat(ctx, key) })
	return info, i.directory.fail("stat", key, err)
}

// Hidden implements Store. A directory has no versions.
func (i *interruptible) Hidden(context.Context, string) (bool, error) { return false, nil }

// Delete implements Store.
func (i *interruptible) Delete(ctx context.Context, key string) error {
	return i.directory.fail("delete", key, act(ctx, func() error { return i.directory.Delete(ctx, key) }))
}

// Retain implements Store.
func (i *interruptible) Retain(ctx context.Context, key string, r Retention) error {
	return i.directory.fail("retain", key, act(ctx, func() error { return i.directory.Retain(ctx, key, r) }))
}

// String implements Store.
func (i *interruptible) String() string { return i.directory.String() }

// Close implements Store.
func (i *interruptible) Close() error { return nil }

// listed is what a list yields.
type listed struct {
	info Info
	err  error
}

// listAhead is how many objects of a list are read ahead.
const listAhead = 64

// List implements Store.
func (i *interruptible) List(ctx context.Context, prefix, after string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		inner, cancel := context.WithCancel(ctx)
		defer cancel()
		found := make(chan listed, listAhead)
		go func() {
			defer close(found)
			for info, err := range i.directory.List(inner, prefix, after) {
				select {
				case found <- listed{info, err}:
				case <-inner.Done():
					return
				}
			}
		}()
		for {
			l, more := listed{}, true
			select {
			case l, more = <-found:
			case <-ctx.Done():
			}
			if err := ctx.Err(); err != nil {
				yield(Info{}, i.directory.fail("list", prefix, err))
				return
			}
			if !more || !yield(l.info, l.err) || l.err != nil {
				return
			}
		}
	}
}
