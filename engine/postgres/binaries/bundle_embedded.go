//go:build bundled

package binaries

import (
	"bytes"
	_ "embed"
	"io"
)

// bundleArchive is written by `go run ./engine/postgres/binaries/internal/packbundle`.
//
//go:embed bundle.tar.zst
var bundleArchive []byte

func embeddedBundle() (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(bundleArchive)), nil
}
