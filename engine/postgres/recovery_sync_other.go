//go:build !linux

package postgres

// recoverySync is PostgreSQL's default: syncfs(2) is Linux's.
func recoverySync() string { return "fsync" }
