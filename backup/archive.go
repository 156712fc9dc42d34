package backup

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strings"
)

// copyBuffer is the size of the buffers file contents pass through.
const copyBuffer = 128 << 10

// member is a file or directory of the archive; content is nil for the latter.
type member struct {
	name    string
	content io.Reader
}

// walkArchive calls visit for each member of the tar stream r, to its end, and
// refuses whatever PostgreSQL does not put there: names that lead out of the
// data directory, links, devices, anything after the end.
func walkArchive(r io.Reader, visit func(member) error) error {
	archive := tar.NewReader(r)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return onlyPadding(r)
		}
		if err != nil {
			return fmt.Errorf("read archive: %w", err)
		}
		m, err := checkMember(header, archive)
		if err != nil {
			return err
		}
		if err := visit(m); err != nil {
			return err
		}
	}
}

func checkMember(header *tar.Header, content io.Reader) (member, error) {
	// PostgreSQL names one directory "./pg_wal/archive_status".
	name := strings.TrimPrefix(strings.TrimSuffix(header.Name, "/"), "./")
	if !filepath.IsLocal(name) || path.Clean(name) != name || name == "." {
		return member{}, fmt.Errorf("archive holds the name %q, which is not one of a data directory", header.Name)
	}
	switch header.Typeflag {
	case tar.TypeDir:
		return member{name: name}, nil
	case tar.TypeReg:
		return member{name: name, content: content}, nil
	default:
		return member{}, fmt.Errorf("archive holds %q, which is neither file nor directory (tar type %q)", name, header.Typeflag)
	}
}

// onlyPadding reads r to its end and accepts zeros.
func onlyPadding(r io.Reader) error {
	buf := make([]byte, 4096)
	for {
		n, err := r.Read(buf)
		if len(bytes.Trim(buf[:n], "\x00")) > 0 {
			return errors.New("archive goes on after its end")
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read archive: %w", err)
		}
	}
}

// archiveContents sums every file of the tar stream r.
func archiveContents(r io.Reader) (contents, error) {
	files, buf := contents{}, make([]byte, copyBuffer)
	err := walkArchive(r, func(m member) error {
		if m.content == nil {
			return nil
		}
		f, err := sum(io.Discard, m.content, buf)
		if err != nil {
			return fmt.Errorf("read %s from archive: %w", m.name, err)
		}
		return files.add(m.name, f)
	})
	return files, err
}
