package binaries

import (
	"archive/tar"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// Pack writes bin as a bundle: a tar.zst of its programs, libraries and shared
// files, in the relative places where PostgreSQL looks for them, with the shared
// libraries they need (except the C library's own) and all licences. Search
// unpacks it on a machine that has none of these. Pack omits LLVM and the
// languages that need an interpreter.
func Pack(w io.Writer, bin Set) error {
	z, err := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedBetterCompression), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return fmt.Errorf("pack: %w", err)
	}
	p := &packer{tar: tar.NewWriter(z), packed: map[string]bool{}}
	err = p.pack(context.Background(), bin)
	if err == nil {
		err = p.tar.Close()
	}
	if cerr := z.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("pack: %w", err)
	}
	return nil
}

// packer writes the archive, each name once.
type packer struct {
	tar    *tar.Writer
	packed map[string]bool
}

func (p *packer) pack(ctx context.Context, bin Set) error {
	l, err := layoutOf(ctx, bin)
	if err != nil {
		return err
	}
	var objects []string // files that may need shared libraries
	for _, dir := range l.dirs {
		found, err := p.tree(l.prefix, dir)
		if err != nil {
			return err
		}
		objects = append(objects, found...)
	}
	libraries, err := neededLibraries(ctx, bin, objects)
	if err != nil {
		return err
	}
	for _, library := range libraries {
		if err := p.file(filepath.Join(bundleLibraries, filepath.Base(library)), library); err != nil {
			return err
		}
	}
	for name, text := range licences(ctx, append(slices.Clone(libraries), bin.Tool("postgres"))) {
		if err := p.text(filepath.Join(bundleLicences, name), text); err != nil {
			return err
		}
	}
	return p.text(bundleBindir, []byte(l.bindir+"\n"))
}

// tree packs the files below dir under their names relative to prefix, and
// returns the programs and libraries among them. It follows links, because those
// of a distribution lead out of the tree.
func (p *packer) tree(prefix, dir string) ([]string, error) {
	var objects []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if leftOut(d.Name()) {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() {
			return nil // a directory, or a broken link
		}
		name, err := filepath.Rel(prefix, path)
		if err != nil {
			return err
		}
		if info.Mode()&0o100 != 0 || strings.Contains(filepath.Base(path), ".so") {
			objects = append(objects, path)
		}
		return p.file(name, path)
	})
	return objects, err
}

// leftOut reports whether a bundle omits the file: LLVM and interpreters are
// larger than everything else together, and files for building extensions need a
// compiler.
func leftOut(name string) bool {
	for _, prefix := range []string{"llvmjit", "plperl", "plpython", "pltcl"} {
		if strings.HasPrefix(name, prefix) || strings.Contains(name, "_"+prefix) {
			return true
		}
	}
	return name == "bitcode" || name == "pgxs" || name == "man" || name == "doc" || name == "include" ||
		strings.HasSuffix(name, ".a")
}

func (p *packer) file(name, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return p.entry(name, info.Size(), info.Mode()&0o100 != 0, f)
}

func (p *packer) text(name string, text []byte) error {
	return p.entry(name, int64(len(text)), false, strings.NewReader(string(text)))
}

// entry writes one file. It omits owner and times, so that the same PostgreSQL
// gives the same archive.
func (p *packer) entry(name string, size int64, executable bool, r io.Reader) error {
	if p.packed[name] {
		return nil
	}
	p.packed[name] = true
	mode := int64(0o644)
	if executable {
		mode = 0o755
	}
	header := &tar.Header{Typeflag: tar.TypeReg, Name: filepath.ToSlash(name), Size: size, Mode: mode}
	if err := p.tar.WriteHeader(header); err != nil {
		return err
	}
	_, err := io.Copy(p.tar, r)
	return err
}
