//go:build !linux

package postgres

import "context"

// endPgUpgrade is not implemented here. An orphaned pg_upgrade ends by itself once
// its servers are stopped, in a directory that the next start removes.
func endPgUpgrade(context.Context, string) error { return nil }
