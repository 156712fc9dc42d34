//go:build !linux

package wal

import "errors"

// dirWatch is not available on this platform: arm returns an error, and the receiver polls.
type dirWatch struct{ written chan struct{} }

func newDirWatch(string) *dirWatch { return &dirWatch{} }

func (w *dirWatch) arm() (newly bool, err error) { return false, errors.ErrUnsupported }

func (w *dirWatch) close() {}
