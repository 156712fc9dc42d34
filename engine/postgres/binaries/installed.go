package binaries

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// installedPlaces returns the directories in which distributions and installers
// put PostgreSQL's server programs. Not all of them exist.
func installedPlaces(ctx context.Context) []string {
	dirs := pgConfigBindir(ctx)
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin",         // Debian, Ubuntu
		"/usr/pgsql-*/bin",                  // the RPMs of postgresql.org
		"/usr/libexec/postgresql*",          // Alpine
		"/usr/lib64/pgsql/bin",              // Gentoo, Fedora
		"/usr/local/pgsql/bin",              // from source
		"/opt/homebrew/opt/postgresql*/bin", // Homebrew on Apple silicon
		"/usr/local/opt/postgresql*/bin",    // Homebrew on Intel
		"/home/linuxbrew/.linuxbrew/opt/postgresql*/bin",
		"/opt/local/lib/postgresql*/bin", // MacPorts
		"/Applications/Postgres.app/Contents/Versions/*/bin",
	} {
		found, _ := filepath.Glob(pattern)
		dirs = append(dirs, found...)
	}
	return append(dirs, pathDirs()...)
}

// pgConfigBindir asks the pg_config on the PATH.
func pgConfigBindir(ctx context.Context) []string {
	path, err := exec.LookPath("pg_config")
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--bindir")
	cmd.Dir = "/"
	out, err := cmd.Output()
	if err != nil {
		return nil
	}
	return []string{strings.TrimSpace(string(out))}
}

// pathDirs returns the directories on the PATH that contain a server.
func pathDirs() []string {
	path, err := exec.LookPath("postgres")
	if err != nil {
		return nil
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return []string{filepath.Dir(path)}
}

// distinctDirs drops paths that are not directories with a server in them, and
// duplicates under other names.
func distinctDirs(dirs []string) []string {
	seen := map[string]bool{}
	var kept []string
	for _, dir := range dirs {
		real, err := filepath.EvalSymlinks(dir)
		if err != nil || seen[real] {
			continue
		}
		seen[real] = true
		// A directory with only client tools is not a candidate. One whose server
		// cannot be run is, so that the error can say why.
		if _, err := os.Lstat(filepath.Join(dir, "postgres")); err == nil {
			kept = append(kept, dir)
		}
	}
	return kept
}
