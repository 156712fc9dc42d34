package move

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Format is the version of the archive.
const Format = 1

const (
	manifestName = "holdfast-appliance.json"
	sumsName     = "SHA256SUMS"
)

// Manifest describes an archive.
type Manifest struct {
	Format    int       `json:"format"`
	Version   string    `json:"version"` // of the program that wrote the archive
	CreatedAt time.Time `json:"created_at"`
	Databases []string  `json:"databases"` // their names
	// ObjectsAway is how many large objects the archive lacks, because they are in the copy off-site only.
	ObjectsAway int64 `json:"objects_away"`
	Files       int   `json:"files"`
	Bytes       int64 `json:"bytes"`
}

// writer writes an archive and computes the checksums.
type writer struct {
	tar  *tar.Writer
	sums bytes.Buffer
}

// Write writes everything below root. Files may grow meanwhile: Write writes them up to their initial size.
func Write(w io.Writer, root string, m Manifest) error {
	m.Format = Format
	sizes := map[string]int64{}
	if err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		sizes[path] = info.Size()
		m.Files++
		m.Bytes += info.Size()
		return nil
	}); err != nil {
		return fmt.Errorf("list the files to be moved: %w", err)
	}
	a := &writer{tar: tar.NewWriter(w)}
	if err := a.manifest(m); err != nil {
		return err
	}
	if err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			return a.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: filepath.ToSlash(name) + "/", Mode: 0o700, Format: tar.FormatPAX})
		}
		return a.file(filepath.ToSlash(name), path, sizes[path])
	}); err != nil {
		return fmt.Errorf("write the archive: %w", err)
	}
	if err := a.entry(sumsName, int64(a.sums.Len()), bytes.NewReader(bytes.Clone(a.sums.Bytes()))); err != nil {
		return err
	}
	return a.tar.Close()
}

func (a *writer) manifest(m Manifest) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("encode manifest: %w", err)
	}
	return a.entry(manifestName, int64(len(text)), bytes.NewReader(text))
}

func (a *writer) file(name, path string, size int64) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return a.entry(name, size, f)
}

// entry writes a file of size bytes from r, which may have more.
func (a *writer) entry(name string, size int64, r io.Reader) error {
	if err := a.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o600, Size: size, Format: tar.FormatPAX}); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	sum := sha256.New()
	if _, err := io.CopyN(io.MultiWriter(a.tar, sum), r, size); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	fmt.Fprintf(&a.sums, "%x  %s\n", sum.Sum(nil), name)
	return nil
}
