//go:build !linux

package postgres

import "context"

// endInitdb is not implemented here. An orphaned initdb ends by itself, in a
// directory that the next start removes.
func endInitdb(context.Context, string) error { return nil }
