package remote

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"time"

	"holdfast/cli/client"
	"holdfast/server/api/wire"
)

// downloadSource describes a download.
type downloadSource struct {
	name string // for people
	id   string // of the content, the same in every version
	etag string // of the version
	size int64
	sum  func() checksum
	want string                 // the expected sum
	url  func() (string, error) // signed; valid for some minutes
}

// checksum computes a checksum and formats it as the API does.
type checksum interface {
	io.Writer
	Text() string
}

// sha256Sum is a checksum in hexadecimal.
type sha256Sum struct{ hash.Hash }

func newSHA256() checksum { return sha256Sum{sha256.New()} }

// Text implements checksum, in the format of exports.
func (s sha256Sum) Text() string { return hex.EncodeToString(s.Sum(nil)) }

// maxBreaks is how many times in a row a download resumes after a connection
// error without receiving a byte, and breakTime the pause before each.
const (
	maxBreaks = 5
	breakTime = time.Second
)

// fetch writes the bytes from offset on, resuming after connection errors.
func (t *task) fetch(src downloadSource, offset int64, w io.Writer, m *meter) error {
	for breaks := 0; offset < src.size; {
		n, err := t.fetchOnce(src, offset, w, m)
		if offset += n; err == nil || offset == src.size {
			continue
		}
		if n > 0 {
			breaks = 0
		}
		if breaks++; breaks > maxBreaks || !mayGoOn(err) || t.ctx.Err() != nil {
			return fmt.Errorf("download %s: %w", src.name, err)
		}
		select {
		case <-t.ctx.Done():
		case <-time.After(breakTime):
		}
	}
	return nil
}

// errWrite marks an error on the local side.
var errWrite = errors.New("write")

// mayGoOn reports whether a retry may get further.
func mayGoOn(err error) bool {
	_, refused := errors.AsType[*client.Error](err)
	return !refused && !errors.Is(err, errWrite) && !errors.Is(err, client.ErrChanged) && !errors.Is(err, client.ErrNotAPI)
}

func (t *task) fetchOnce(src downloadSource, offset int64, w io.Writer, m *meter) (int64, error) {
	url, err := src.url()
	if err != nil {
		return 0, err
	}
	body, err := t.api.OpenDownload(t.ctx, url, src.etag, offset)
	if err != nil {
		return 0, err
	}
	defer body.Close()
	n, err := io.Copy(failing{w}, io.LimitReader(metered{body, m}, src.size-offset))
	if err == nil && n < src.size-offset {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// failing marks a writer's errors with errWrite.
type failing struct{ io.Writer }

// Write implements io.Writer.
func (f failing) Write(p []byte) (int, error) {
	n, err := f.Writer.Write(p)
	if err != nil {
		err = errors.Join(errWrite, err)
	}
	return n, err
}

// isStream reports whether to is standard output or an existing pipe or device.
func isStream(to string) bool {
	info, err := os.Stat(to)
	return to == "-" || err == nil && !info.IsDir() && !info.Mode().IsRegular()
}

// stream downloads to a pipe or a device. The checksum is known only after the
// last byte is written.
func (t *task) stream(src downloadSource, to string, m *meter) error {
	w := t.cmd.OutOrStdout()
	if to != "-" { // opening a pipe waits for its reader
		file, err := await(t.ctx, func() (*os.File, error) { return os.OpenFile(to, os.O_WRONLY, 0) })
		if err != nil {
			return err
		}
		defer file.Close()
		w = file
	}
	sum := src.sum()
	if err := t.fetch(src, 0, io.MultiWriter(w, sum), m); err != nil {
		return err
	}
	return src.check(sum)
}

func (src downloadSource) check(sum checksum) error {
	if got := sum.Text(); got != src.want {
		return fmt.Errorf("download %s: %w; ask for it again", src.name, client.ErrDamaged)
	}
	return nil
}

// save downloads into a file, which appears complete or not at all. It resumes
// a partial download.
func (t *task) save(root *os.Root, name string, src downloadSource, m *meter) error {
	if info, err := root.Lstat(name); err == nil && !info.Mode().IsRegular() && info.Mode()&fs.ModeSymlink == 0 {
		return &skippedName{name, "exists already and is not a file"}
	}
	partial := src.partial(name)
	file, err := openPartial(root, partial)
	if err != nil {
		return err
	}
	defer file.Close() // and releases the lock
	sum := src.sum()
	offset, err := io.Copy(sum, io.LimitReader(file, src.size))
	if err != nil {
		return fmt.Errorf("read %s: %w", partial, err)
	}
	if offset > 0 {
		t.note("going on with %s after %s", src.name, size(offset))
		m.add(offset)
	}
	err = t.fetch(src, offset, io.MultiWriter(file, sum), m)
	if err == nil {
		err = src.check(sum)
	}
	switch {
	case errors.Is(err, client.ErrChanged), errors.Is(err, client.ErrDamaged), client.CodeOf(err) == wire.CodeNotFound:
		return errors.Join(err, root.Remove(partial)) // it is useless now
	case err != nil:
		return err
	}
	if err := file.Sync(); err != nil {
		return err
	}
	return root.Rename(partial, name)
}
