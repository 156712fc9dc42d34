//go:build !linux

package postgres

// atNice runs do. A thread's niceness cannot be changed here.
func atNice(_ int, do func() error) error { return do() }
