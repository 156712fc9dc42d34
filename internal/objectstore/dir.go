package objectstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/time/rate"

	"holdfast/internal/ctxio"
	"holdfast/internal/durable"
)

const (
	// incoming is the directory of files that are not complete. No key begins with a
	// dot.
	incoming = ".incoming"
	// abandoned is the age at which a file in incoming belongs to nobody any more.
	abandoned = 24 * time.Hour
)

// directory does what a Store in a directory does, see interruptible. A key is a path; nothing else is stored with
// an object.
type directory struct {
	root     string
	identity os.FileInfo // of root when it was opened
	fs       durable.FS
	limiter  *rate.Limiter
	known    sync.Map // directories whose names are durable
}

// open opens a directory that exists: one that does not may be a disk that
// is not mounted, and to create it would fill the disk below.
func (d *directory) open() error {
	info, err := os.Stat(d.root)
	if err == nil && !info.IsDir() {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return missingRoot(err)
	}
	d.identity = info
	staging := filepath.Join(d.root, incoming)
	if err := d.fs.Mkdir(staging); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return removeAbandoned(staging)
}

// missingRoot tells a directory that is missing from an object that is.
func missingRoot(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return fmt.Errorf("%w: %w", ErrNoStore, err)
	}
	return err
}

// removeAbandoned removes what killed processes left.
func removeAbandoned(staging string) error {
	entries, err := os.ReadDir(staging)
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && time.Since(info.ModTime()) > abandoned {
			err = os.Remove(filepath.Join(staging, e.Name()))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// check is what every operation begins with: the key is one, the caller still waits,
// and the directory is the one that was opened, not an empty mount point.
func (d *directory) check(ctx context.Context, key string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := checkKey(key); err != nil {
		return fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	return d.checkRoot()
}

func (d *directory) checkRoot() error {
	now, err := os.Stat(d.root)
	if err != nil {
		return missingRoot(err)
	}
	if !os.SameFile(now, d.identity) {
		return fmt.Errorf("%w: another directory is mounted there now", ErrNoStore)
	}
	return nil
}

func (d *directory) path(key string) string { return filepath.Join(d.root, filepath.FromSlash(key)) }

// Create is Store's.
func (d *directory) Create(ctx context.Context, key string, body Body, opts CreateOptions) error {
	err := d.check(ctx, key)
	if err == nil {
		err = checkCreate(body, opts)
	}
	if err == nil && opts.Retention != (Retention{}) {
		err = fmt.Errorf("%w: a directory has no Object Lock", ErrUnsupported)
	}
	if err == nil {
		err = d.create(ctx, key, body)
	}
	return d.fail("create", key, err)
}

// create looks for the key first only to save writing: WriteNew decides. The name of a file that exists may be one whose
// directory could not be synced, and the caller counts on what exists.
func (d *directory) create(ctx context.Context, key string, body Body) error {
	path := d.path(key)
	err := d.createNew(ctx, path, body)
	if errors.Is(err, fs.ErrExist) {
		if syncErr := durable.SyncDir(d.fs, filepath.Dir(path)); syncErr != nil {
			return syncErr
		}
	}
	return err
}

func (d *directory) createNew(ctx context.Context, path string, body Body) error {
	if _, err := os.Lstat(path); err == nil {
		return fs.ErrExist
	}
	if err := d.ensureDir(filepath.Dir(path)); err != nil {
		return err
	}
	err := durable.WriteNew(d.fs, filepath.Join(d.root, incoming, rand.Text()), path, func(w io.Writer) error {
		return d.copy(ctx, w, body)
	})
	if errors.Is(err, fs.ErrNotExist) { // somebody removed the directory
		d.known.Clear()
	}
	return err
}

func (d *directory) copy(ctx context.Context, w io.Writer, body Body) error {
	r, err := body.Open()
	if err != nil {
		return &bodyError{err}
	}
	defer r.Close()
	sized := newSized(r, body.Size())
	_, err = io.Copy(onlyWriter{w}, limitUpload(ctx, ctxio.NewReader(ctx, sized), d.limiter))
	if err == nil {
		err = sized.finish()
	}
	return err
}

// onlyWriter hides other methods, so that io.Copy uses a buffer.
type onlyWriter struct{ io.Writer }

// ensureDir makes the directories down to dir, with durable names.
func (d *directory) ensureDir(dir string) error {
	if _, ok := d.known.Load(dir); ok || dir == d.root {
		return nil
	}
	if err := d.ensureDir(filepath.Dir(dir)); err != nil {
		return err
	}
	if err := durable.EnsureDir(d.fs, dir); err != nil {
		return err
	}
	d.known.Store(dir, nil)
	return nil
}

// Get is Store's.
func (d *directory) Get(ctx context.Context, key string, r Range) (*Object, error) {
	if err := d.check(ctx, key); err != nil {
		return nil, d.fail("read", key, err)
	}
	o, err := d.read(ctx, key, r)
	return o, d.fail("read", key, err)
}

func (d *directory) read(ctx context.Context, key string, r Range) (*Object, error) {
	f, err := d.fs.Open(d.path(key))
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fs.ErrNotExist
	}
	length := int64(0)
	if err == nil {
		length, err = r.within(info.Size())
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	section := ctxio.NewReader(ctx, io.NewSectionReader(f, r.Offset, length))
	body := &fileBody{Reader: section, Closer: f, store: d, key: key, left: length}
	return &Object{Info: describe(key, info), Length: length, ReadCloser: body}, nil
}

// fileBody is the reader of an object in a directory.
type fileBody struct {
	io.Reader
	io.Closer
	store *directory
	key   string
	left  int64
}

// Read implements io.Reader.
func (b *fileBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.left -= int64(n)
	switch {
	case err == io.EOF && b.left > 0:
		err = b.store.fail("read", b.key, fmt.Errorf("%w: the file became shorter", ErrCorrupt))
	case err != io.EOF:
		err = b.store.fail("read", b.key, err)
	}
	return n, err
}

func describe(key string, info os.FileInfo) Info {
	return Info{Key: key, Size: info.Size(), Modified: info.ModTime()}
}

// Stat is Store's.
func (d *directory) Stat(ctx context.Context, key string) (Info, error) {
	if err := d.check(ctx, key); err != nil {
		return Info{}, d.fail("stat", key, err)
	}
	info, err := os.Lstat(d.path(key))
	if err == nil && !info.Mode().IsRegular() {
		err = fs.ErrNotExist
	}
	if err != nil {
		return Info{}, d.fail("stat", key, err)
	}
	return describe(key, info), nil
}

// Delete is Store's. It leaves directories, which hold nothing.
func (d *directory) Delete(ctx context.Context, key string) error {
	err := d.check(ctx, key)
	if err == nil {
		err = d.remove(d.path(key))
	}
	return d.fail("delete", key, err)
}

func (d *directory) remove(path string) error {
	switch err := d.fs.Remove(path); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	return durable.SyncDir(d.fs, filepath.Dir(path))
}

// Retain is Store's.
func (d *directory) Retain(ctx context.Context, key string, _ Retention) error {
	err := d.check(ctx, key)
	if err == nil {
		err = fmt.Errorf("%w: a directory has no Object Lock", ErrUnsupported)
	}
	return d.fail("retain", key, err)
}

// String returns the URL.
func (d *directory) String() string { return "file://" + d.root }
