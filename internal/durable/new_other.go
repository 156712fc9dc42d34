//go:build !linux

package durable

import "errors"

func renameNoReplace(_, _ string) error { return errors.ErrUnsupported }
