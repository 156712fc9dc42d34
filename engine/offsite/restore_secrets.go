package offsite

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"holdfast/engine/core"
	"holdfast/engine/offsite/stream"
	"holdfast/internal/durable"
)

// secretRestorer writes the secrets.
type secretRestorer struct{ dir string }

func newSecretRestorer(dir string) *secretRestorer { return &secretRestorer{dir} }

func (r *secretRestorer) entry(_ context.Context, e stream.Entry) error {
	dir, name := filepath.Split(filepath.FromSlash(e.Name))
	switch {
	case dir == "" && (name == core.KeyFile || name == core.WebhookSecretFile):
	case filepath.Clean(dir) == tlsDirectory && filepath.IsLocal(name):
		if err := os.MkdirAll(filepath.Join(r.dir, tlsDirectory), 0o700); err != nil {
			return fmt.Errorf("restore the secrets: %w", err)
		}
	default:
		return fmt.Errorf("%w: a secret of the name %q", stream.ErrVersion, e.Name)
	}
	mode := os.FileMode(0o600)
	if filepath.Ext(name) == ".crt" {
		mode = 0o644
	}
	if err := durable.WriteFile(filepath.Join(r.dir, dir, name), e.Data, mode); err != nil {
		return fmt.Errorf("restore the secrets: %w", err)
	}
	return nil
}

func (r *secretRestorer) frame(context.Context, stream.Frame) error { return nil }

func (r *secretRestorer) finish(context.Context) error {
	if err := durable.SyncDir(durable.OS{}, r.dir); err != nil {
		return fmt.Errorf("restore the secrets: %w", err)
	}
	return nil
}
