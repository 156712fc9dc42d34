//go:build !linux

package durable

import "os"

func cloneFile(_, _ *os.File) error { return ErrCannotClone }
