//go:build !bundled

package binaries

import "io"

func embeddedBundle() (io.ReadCloser, error) { return nil, ErrNoBundle }
