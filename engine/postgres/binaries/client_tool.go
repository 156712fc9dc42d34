package binaries

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

// ClientTool finds a client program (pg_dump, pg_restore, psql) that is at least
// as new as minMajor: pg_dump refuses a server newer than itself. It looks beside
// near first, then in every installed place, then on the PATH. The error names
// the remedy.
func (s Search) ClientTool(ctx context.Context, name string, minMajor int, near Set) (string, error) {
	reason := fmt.Errorf("%s is not installed", name)
	for _, path := range s.clientTools(name, near) {
		tool, err := probeTool(ctx, path)
		switch {
		case err != nil:
			reason = err
		case tool.Major < minMajor:
			reason = fmt.Errorf("%s is of PostgreSQL %s", path, tool.Version)
		default:
			return path, nil
		}
	}
	return "", fmt.Errorf("%s of PostgreSQL %d or newer is needed (%w): install the package postgresql-client-%d or newer", name, minMajor, reason, minMajor)
}

// clientTools lists the paths of programs with that name, near first.
func (s Search) clientTools(name string, near Set) []string {
	dirs := []string{near.Dir}
	if s.Explicit != "" {
		dirs = append(dirs, s.Explicit)
	}
	if s.Installed != nil {
		dirs = append(dirs, s.Installed()...)
	} else {
		dirs = append(dirs, installedPlaces(context.Background())...)
	}
	if path, err := exec.LookPath(name); err == nil && s.Installed == nil {
		dirs = append(dirs, filepath.Dir(path))
	}
	var tools []string
	for _, dir := range dirs {
		path, err := filepath.Abs(filepath.Join(dir, name))
		if dir == "" || err != nil || slices.Contains(tools, path) {
			continue
		}
		if _, err := exec.LookPath(path); err == nil {
			tools = append(tools, path)
		}
	}
	return tools
}

// probeTool asks a client program for its version.
func probeTool(ctx context.Context, path string) (Set, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	tool := Set{Dir: filepath.Dir(path)}
	out, err := tool.run(ctx, filepath.Base(path), "--version")
	if err != nil {
		return Set{}, err
	}
	tool.Version, tool.Major, err = parseVersion(out)
	return tool, err
}
