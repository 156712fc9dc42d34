package backup

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"holdfast/backup/repository"
)

// WriteTar writes a backup to w as a tar stream of the data directory, like pg_basebackup: pg_wal empty,
// global/pg_control last. A stream that ends with an error has no end-of-archive marker and no pg_control. If over
// is set, the files below that directory replace the backup's.
func WriteTar(ctx context.Context, source *repository.Snapshot, w io.Writer, over string) error {
	if err := source.Check(); err != nil {
		return fmt.Errorf("write tar: %w", err)
	}
	reader, err := source.Repository().NewReader()
	if err != nil {
		return err
	}
	defer reader.Close()
	s := &tarStream{ctx: ctx, source: source, reader: reader, tar: tar.NewWriter(w)}
	if over != "" {
		if s.overNames, err = filesBelow(over); err != nil {
			return fmt.Errorf("write tar: %w", err)
		}
		s.over = over
	}
	if err := s.run(); err != nil {
		return fmt.Errorf("write tar: %w", err)
	}
	return nil
}

type tarStream struct {
	ctx    context.Context
	source *repository.Snapshot
	reader *repository.Reader
	tar    *tar.Writer

	over      string          // a directory
	overNames map[string]bool // the files in it
}

func (s *tarStream) run() error {
	if err := s.ownFiles(); err != nil {
		return err
	}
	var control *repository.Entry
	for i := range s.source.Entries {
		e := &s.source.Entries[i]
		if e.Path == controlFile {
			control = e
			continue
		}
		if s.overNames[e.Path] {
			continue
		}
		if err := s.entry(e); err != nil {
			return fmt.Errorf("%s: %w", e.Path, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.overNames)) {
		if err := s.overFile(name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if control == nil {
		return fmt.Errorf("the backup holds no %s", controlFile)
	}
	return errors.Join(s.entry(control), s.tar.Close())
}

// ownFiles writes the files that a server's data directory does not have.
func (s *tarStream) ownFiles() error {
	var manifest bytes.Buffer
	if err := writeServerManifest(&manifest, s.source.Manifest); err != nil {
		return err
	}
	for _, f := range append(ownFiles(s.source.Manifest), ownFile{serverManifestFile, manifest.String()}) {
		if err := s.header(f.name, tar.TypeReg, int64(len(f.content)), s.source.Backup.CompletedAt); err != nil {
			return err
		}
		if _, err := io.WriteString(s.tar, f.content); err != nil {
			return err
		}
	}
	return nil
}

func (s *tarStream) header(name string, kind byte, size int64, modTime time.Time) error {
	h := &tar.Header{Name: name, Typeflag: kind, Size: size, Mode: 0o600, ModTime: modTime.Truncate(time.Second)}
	if kind == tar.TypeDir {
		h.Name, h.Mode = name+"/", 0o700
	}
	return s.tar.WriteHeader(h)
}

// overFile writes a file of the directory over.
func (s *tarStream) overFile(name string) error {
	f, err := os.Open(filepath.Join(s.over, filepath.FromSlash(name)))
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := s.header(name, tar.TypeReg, info.Size(), info.ModTime()); err != nil {
		return err
	}
	if err := context.Cause(s.ctx); err != nil {
		return err
	}
	_, err = io.Copy(s.tar, f)
	return err
}

func (s *tarStream) entry(e *repository.Entry) error {
	if e.IsDir() {
		return s.header(e.Path, tar.TypeDir, 0, e.ModTime)
	}
	if err := s.header(e.Path, tar.TypeReg, e.Size, e.ModTime); err != nil {
		return err
	}
	crc, left := uint32(0), e.Size
	err := s.reader.Each(e.Chunks, func(content []byte) error {
		if err := context.Cause(s.ctx); err != nil {
			return err
		}
		n := min(chunkSize, left)
		left -= n
		if content == nil {
			content = zeroChunk[:n]
		}
		crc = crc32.Update(crc, castagnoli, content)
		_, err := s.tar.Write(content)
		return err
	})
	if err == nil && crc != e.CRC32C {
		err = fmt.Errorf("%w: its checksum does not match the stored one", repository.ErrDamaged)
	}
	return err
}

var zeroChunk [chunkSize]byte
