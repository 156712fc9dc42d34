package binaries

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// Names in the root of a bundle.
const (
	bundleLibraries = "holdfast-lib"      // shared libraries the programs need
	bundleLicences  = "holdfast-licences" // the licences of everything
	bundleBindir    = "holdfast-bindir"   // a file with the relative path of the programs
)

// bundled unpacks the bundle, once, and probes it.
func (s Search) bundled(ctx context.Context) []Candidate {
	open := s.Bundle
	if open == nil {
		open = embeddedBundle
	}
	dir, err := s.unpackBundle(ctx, open)
	if errors.Is(err, ErrNoBundle) {
		return nil
	}
	if err != nil {
		return []Candidate{{Set{Dir: s.CacheDir, Origin: OriginBundled}, err}}
	}
	return []Candidate{candidate(ctx, dir, OriginBundled)}
}

// unpackBundle unpacks the archive into CacheDir/bundled-<digest>, unless that
// exists, and returns the directory of its programs.
func (s Search) unpackBundle(ctx context.Context, open func() (io.ReadCloser, error)) (string, error) {
	digest, err := digestOf(open)
	if err != nil {
		return "", err
	}
	if s.CacheDir == "" {
		return "", errors.New("unpack bundle: there is no cache directory")
	}
	root := filepath.Join(s.CacheDir, "bundled-"+digest[:16])
	if _, err := os.Lstat(root); err == nil {
		return bindirOf(root)
	}
	unlock, err := s.lockCache(ctx)
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Lstat(root); err == nil {
		return bindirOf(root) // another process was faster
	}
	scratch, err := s.scratchDir()
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(scratch)
	if err := unpackFrom(ctx, open, scratch); err != nil {
		return "", fmt.Errorf("unpack bundle: %w", err)
	}
	if _, err := bindirOf(scratch); err != nil {
		return "", err
	}
	if err := publishDir(scratch, root); err != nil {
		return "", fmt.Errorf("unpack bundle: %w", err)
	}
	return bindirOf(root)
}

func digestOf(open func() (io.ReadCloser, error)) (string, error) {
	r, err := open()
	if err != nil {
		return "", err
	}
	defer r.Close()
	h := sha256.New()
	if _, err := io.Copy(h, r); err != nil {
		return "", fmt.Errorf("read bundle: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func bindirOf(root string) (string, error) {
	rel, err := os.ReadFile(filepath.Join(root, bundleBindir))
	if err != nil {
		return "", fmt.Errorf("read bundle: %w", err)
	}
	if !filepath.IsLocal(strings.TrimSpace(string(rel))) {
		return "", fmt.Errorf("read bundle: programs outside of it: %q", rel)
	}
	return filepath.Join(root, strings.TrimSpace(string(rel))), nil
}

func unpackFrom(ctx context.Context, open func() (io.ReadCloser, error), dir string) error {
	r, err := open()
	if err != nil {
		return err
	}
	defer r.Close()
	return unpack(ctx, r, dir)
}

// unpack unpacks a tar.zst into dir. No archive entry can write outside it.
func unpack(ctx context.Context, r io.Reader, dir string) error {
	z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return err
	}
	defer z.Close()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	archive := tar.NewReader(z)
	for ctx.Err() == nil {
		header, err := archive.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := unpackFile(root, header, archive); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// unpackFile writes one file and creates its directories. A bundle holds regular
// files only.
func unpackFile(root *os.Root, header *tar.Header, r io.Reader) error {
	if header.Typeflag != tar.TypeReg {
		return fmt.Errorf("%s: not a regular file", header.Name)
	}
	name := filepath.FromSlash(header.Name)
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	if header.Mode&0o100 != 0 {
		mode = 0o755
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Close())
}
