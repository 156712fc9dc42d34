//go:build !linux

package backup

import (
	"errors"
	"os"
)

// setDirect has no counterpart here.
func setDirect(*os.File, bool) error { return errors.ErrUnsupported }
