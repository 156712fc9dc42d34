//go:build !linux

package postgres

import "context"

// endInitdb has nothing to look in here. An initdb that was left behind ends
// by itself, in a directory that the next start removes.
func endInitdb(context.Context, string) error { return nil }
