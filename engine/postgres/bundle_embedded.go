//go:build bundled

package postgres

import (
	"bytes"
	_ "embed"
	"io"
)

// bundleArchive is written by `go run ./engine/postgres/internal/packbundle`.
//
//go:embed bundle.tar.zst
var bundleArchive []byte

func embeddedBundle() (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(bundleArchive)), nil
}
