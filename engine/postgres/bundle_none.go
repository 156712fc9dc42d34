//go:build !bundled

package postgres

import "io"

func embeddedBundle() (io.ReadCloser, error) { return nil, ErrNoBundle }
