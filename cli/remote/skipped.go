package remote

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
)

// skippedName is why one of several objects or files is left out because of its name.
// The others are still transferred.
type skippedName struct {
	name string // of the object or file
	why  string
}

// Error implements error.
func (u *skippedName) Error() string { return u.name + ": " + u.why }

// asSkipped separates an error that skips one name from one that ends the work on all.
func asSkipped(err error) (*skippedName, error) {
	if u, ok := errors.AsType[*skippedName](err); ok {
		return u, nil
	}
	return nil, err
}

// outcome is the result for one of several items.
type outcome[R any] struct {
	of      R
	skipped *skippedName // nil if it was transferred
}

// split separates transferred items from those left out.
func split[R any](all []outcome[R]) (results []R, skipped []*skippedName) {
	for _, one := range all {
		if one.skipped != nil {
			skipped = append(skipped, one.skipped)
			continue
		}
		results = append(results, one.of)
	}
	return results, skipped
}

// skippedError returns an error that lists what was left out, nil if nothing was.
func skippedError(what, remedy string, all []*skippedName) error {
	if len(all) == 0 {
		return nil
	}
	var text strings.Builder
	fmt.Fprintf(&text, "left out %d %s because of their names; %s:", len(all), what, remedy)
	for _, u := range all {
		fmt.Fprintf(&text, "\n  %s", printable(u.Error()))
	}
	return failf(exitError, "%s", text.String())
}

// aboutName reports whether a file system error is about the name of a file or
// of its directories, not about the disk: another name would work.
func aboutName(err error) bool {
	_, ofPath := errors.AsType[*fs.PathError](err)
	number, ofSystem := errors.AsType[syscall.Errno](err)
	if !ofSystem {
		return ofPath // os.Root's own error: the name escapes the directory
	}
	switch number {
	case syscall.ENAMETOOLONG, syscall.ENOTDIR, syscall.EISDIR, syscall.EEXIST, syscall.ELOOP, syscall.EINVAL, syscall.EILSEQ:
		return true
	default:
		return false
	}
}

// whyName explains an aboutName error.
func whyName(err error) string {
	number, ofSystem := errors.AsType[syscall.Errno](err)
	switch {
	case !ofSystem:
		return "an existing link leads out of the directory"
	case number == syscall.EEXIST, number == syscall.ENOTDIR:
		return "a file exists where a directory is needed"
	default:
		return number.Error()
	}
}
