package move

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// ErrDamaged means that an archive differs from what was written.
var ErrDamaged = errors.New("the archive is damaged")

// maxText limits the manifest, in bytes.
const maxText = 64 << 20

// reader unpacks an archive and computes the checksums.
type reader struct {
	root     *os.Root
	sums     bytes.Buffer
	last     string // the previous entry
	manifest Manifest
}

// Read unpacks an archive into root, an empty directory, and verifies all of it. After an error the content of root is
// unusable.
func Read(r io.Reader, root string) (Manifest, error) {
	dir, err := os.OpenRoot(root)
	if err != nil {
		return Manifest{}, fmt.Errorf("unpack the archive: %w", err)
	}
	defer dir.Close()
	a := &reader{root: dir}
	archive := tar.NewReader(r)
	for {
		header, err := archive.Next()
		if err != nil {
			return a.manifest, a.cut(err)
		}
		if a.last == "" && header.Name != manifestName {
			return a.manifest, errors.New("this is not an archive of an appliance: its first entry is not " + manifestName)
		}
		a.last = header.Name
		if header.Name == sumsName {
			return a.manifest, a.check(archive)
		}
		if err := a.entry(header, archive); err != nil {
			return a.manifest, err
		}
	}
}

// cut returns the error for an archive that cannot be read to its end.
func (a *reader) cut(err error) error {
	switch {
	case a.last == "":
		return errors.New("this is not an archive of an appliance")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: it ends in %s, and the rest is missing", ErrDamaged, a.last)
	case errors.Is(err, tar.ErrHeader):
		return fmt.Errorf("%w after %s", ErrDamaged, a.last)
	default:
		return fmt.Errorf("read the archive at %s: %w", a.last, err)
	}
}

func (a *reader) entry(header *tar.Header, r io.Reader) error {
	name := strings.TrimSuffix(header.Name, "/")
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return fmt.Errorf("%w: %q is not a path inside it", ErrDamaged, name)
	}
	switch header.Typeflag {
	case tar.TypeDir:
		return a.root.MkdirAll(filepath.FromSlash(name), 0o700)
	case tar.TypeReg:
	default:
		return fmt.Errorf("%w: %s is neither a file nor a directory", ErrDamaged, name)
	}
	if name == manifestName {
		return a.readManifest(r)
	}
	f, err := a.root.OpenFile(filepath.FromSlash(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("unpack %s: %w", name, err)
	}
	err = a.copy(name, f, r)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

func (a *reader) readManifest(r io.Reader) error {
	var text bytes.Buffer
	if err := a.copy(manifestName, &text, io.LimitReader(r, maxText)); err != nil {
		return err
	}
	if err := json.Unmarshal(text.Bytes(), &a.manifest); err != nil {
		return fmt.Errorf("%w: %s: %v", ErrDamaged, manifestName, err)
	}
	if a.manifest.Format > Format {
		return fmt.Errorf("the archive has format %d, this holdfast knows formats up to %d: use a newer holdfast", a.manifest.Format, Format)
	}
	return nil
}

func (a *reader) copy(name string, w io.Writer, r io.Reader) error {
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(w, sum), r); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return a.cut(err)
		}
		return fmt.Errorf("unpack %s: %w", name, err)
	}
	fmt.Fprintf(&a.sums, "%x  %s\n", sum.Sum(nil), name)
	return nil
}

// check compares the checksums of what was read with the list at the end of the archive.
func (a *reader) check(r io.Reader) error {
	list, err := io.ReadAll(io.LimitReader(r, int64(a.sums.Len())+1)) // a longer list cannot be equal
	if err != nil {
		return a.cut(err)
	}
	if bytes.Equal(list, a.sums.Bytes()) {
		return nil
	}
	listed := map[string]bool{}
	for line := range bytes.Lines(list) {
		listed[string(line)] = true
	}
	for line := range bytes.Lines(a.sums.Bytes()) {
		if !listed[string(line)] {
			_, name, _ := bytes.Cut(bytes.TrimSpace(line), []byte("  "))
			return fmt.Errorf("%w: %s is not what was written", ErrDamaged, name)
		}
	}
	return fmt.Errorf("%w: files are missing", ErrDamaged)
}
