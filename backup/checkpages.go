package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ErrUnsoundPage means that a relation's page is not as PostgreSQL wrote it.
var ErrUnsoundPage = errors.New("a page has a wrong checksum")

// CheckPages reads every page of every relation in the data directory dir and
// compares its checksum, as pg_checksums does. The server must be shut down and
// have checksums enabled. It returns the number of pages; the error names the
// first damaged page and wraps [ErrUnsoundPage].
func CheckPages(ctx context.Context, dir string) (pages int64, err error) {
	buffer := make([]byte, chunkSize)
	for _, top := range []string{"global", "base"} {
		err := filepath.WalkDir(filepath.Join(dir, top), func(file string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			name := filepath.ToSlash(strings.TrimPrefix(file, dir+string(filepath.Separator)))
			relation, ok := parseRelation(name)
			if !ok || relation.temp {
				return nil
			}
			n, err := checkFile(ctx, file, relation, buffer)
			pages += n
			if err != nil {
				return fmt.Errorf("check %s: %w", name, err)
			}
			return nil
		})
		if err != nil {
			return pages, err
		}
	}
	return pages, nil
}

// checkFile checks the pages of one file of a relation.
func checkFile(ctx context.Context, file string, relation relationFile, buffer []byte) (pages int64, err error) {
	f, err := os.Open(file)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for {
		if err := context.Cause(ctx); err != nil {
			return pages, err
		}
		n, err := io.ReadFull(f, buffer)
		if err == io.EOF {
			return pages, nil
		}
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			return pages, err
		}
		if n%pageSize != 0 {
			return pages, fmt.Errorf("%w: the file ends within page %d", ErrUnsoundPage, pages+int64(n/pageSize))
		}
		for at := 0; at < n; at += pageSize {
			block := relation.segment*pagesPerSegment + uint32(pages)
			if !pageIsSound(buffer[at:at+pageSize], block) {
				return pages, fmt.Errorf("%w: page %d", ErrUnsoundPage, block)
			}
			pages++
		}
	}
}
