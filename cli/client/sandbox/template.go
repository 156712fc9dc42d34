package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"

	"holdfast/server/api/wire"
)

// ensure returns once the template is there. It fills the template, or waits until another
// process has filled it.
func (a *appliance) ensure(ctx context.Context, template Template) error {
	if template.Hash == "" || template.Fill == nil {
		return errors.New("a template needs Hash and Fill")
	}
	var answer struct {
		Ready       bool
		Finish      string
		Environment wire.Environment
	}
	held, err := a.post(ctx, "/sandbox/templates", map[string]string{"hash": template.Hash}, &answer)
	if err != nil {
		return err
	}
	defer held.close()
	if answer.Ready {
		return nil
	}
	if err := template.Fill(ctx, database(answer.Environment)); err != nil {
		return fmt.Errorf("fill the template: %w", err)
	}
	finished, err := a.post(ctx, answer.Finish, nil, &answer)
	if err != nil {
		return err
	}
	finished.close()
	return nil
}

// Hash returns a hash of the parts, in their order: of SQL texts, of a version.
func Hash(parts ...string) string {
	sum := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(sum, "%d %s", len(part), part)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// HashFiles returns a hash of all files, by name and content.
func HashFiles(files fs.FS) (string, error) {
	var parts []string
	err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(files, path)
		parts = append(parts, path, string(content))
		return err
	})
	return Hash(parts...), err
}
