//go:build !linux

package directio

import (
	"errors"
	"os"
)

// Set has no counterpart here.
func Set(*os.File, bool) error { return errors.ErrUnsupported }
