package binaries

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// OldestMajor is the oldest PostgreSQL that holdfast runs: version 15 revoked
// CREATE on the schema public from PUBLIC, and multiplexes base backups in one
// stream.
const OldestMajor = 15

// Origin says where binaries came from.
type Origin string

// The origins, in the order in which they are tried.
const (
	OriginFlag       Origin = "flag"
	OriginInstalled  Origin = "installed"
	OriginBundled    Origin = "bundled"
	OriginDownloaded Origin = "downloaded"
)

// Set are the programs of one PostgreSQL version, known to work.
type Set struct {
	Dir     string // the directory that holds the programs, absolute
	Version string // as `postgres --version` prints it: "15.18", "18beta1"
	Major   int    // 15
	Origin  Origin
	Detail  string // for people: what was found, where
}

// Tool returns the absolute path of the program name ("postgres", "initdb"). The
// program may not exist.
func (b Set) Tool(name string) string { return filepath.Join(b.Dir, name) }

// Env returns the entire environment in which every program of b runs. It does
// not inherit the caller's: PGDATA, PGPORT, LD_PRELOAD or a locale must not
// change what a postmaster does.
func (b Set) Env() []string {
	env := []string{"LC_ALL=C", "PATH=" + b.Dir + ":/usr/local/bin:/usr/bin:/bin"}
	if libs := b.bundledLibraries(); libs != "" {
		env = append(env, "LD_LIBRARY_PATH="+libs)
	}
	return env
}

// ToolEnv returns the environment that a program found by ClientTool needs.
func ToolEnv(path string) []string { return Set{Dir: filepath.Dir(path)}.Env() }

// bundledLibraries returns the directory of the shared libraries that Pack put
// beside the programs, "" if there is none.
func (b Set) bundledLibraries() string {
	// The depth of the programs below the bundle's root depends on how the
	// packed PostgreSQL was built.
	for dir := filepath.Dir(b.Dir); len(dir) > 1; dir = filepath.Dir(dir) {
		libs := filepath.Join(dir, bundleLibraries)
		if info, err := os.Stat(libs); err == nil && info.IsDir() {
			return libs
		}
	}
	return ""
}

// Has reports whether the server can preload the library name, that is, whether
// one of the usual layouts has its file.
func (b Set) Has(library string) bool {
	for _, pattern := range []string{"../lib/%s", "../lib/postgresql/%s", "../lib64/%s", "../lib/postgresql@*/%s"} {
		for _, ext := range []string{".so", ".dylib"} {
			found, _ := filepath.Glob(filepath.Join(b.Dir, fmt.Sprintf(pattern, library+ext)))
			if len(found) > 0 {
				return true
			}
		}
	}
	return false
}

// run runs a program to completion and returns its standard output; the error
// contains both output streams.
func (b Set) run(ctx context.Context, name string, args ...string) (string, error) {
	cmd := b.Command(ctx, name, args...)
	var out, all bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &all
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w%s", name, err, Indent(all.String()+out.String()))
	}
	return out.String(), nil
}

// Command prepares a program of b. Its working directory is "/": programs of
// PostgreSQL 15 refuse to run in a directory to which they may not return, and
// holdfast's own working directory may be closed to the user it has become.
func (b Set) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, b.Tool(name), args...)
	cmd.Env = b.Env()
	cmd.Dir = "/"
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// probe checks whether the programs in dir work for this user.
func probe(ctx context.Context, dir string, origin Origin) (Set, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	bin := Set{Dir: dir, Origin: origin}
	if _, err := bin.run(ctx, "initdb", "--version"); err != nil {
		return Set{}, err
	}
	out, err := bin.run(ctx, "postgres", "--version")
	if err != nil {
		return Set{}, err
	}
	if bin.Version, bin.Major, err = parseVersion(out); err != nil {
		return Set{}, err
	}
	if bin.Major < OldestMajor {
		return Set{}, fmt.Errorf("PostgreSQL %s is too old: %d is the oldest supported", bin.Version, OldestMajor)
	}
	bin.Detail = fmt.Sprintf("PostgreSQL %s, %s, in %s", bin.Version, origin, dir)
	return bin, nil
}

// parseVersion reads "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)".
func parseVersion(out string) (version string, major int, err error) {
	m := regexp.MustCompile(`\(PostgreSQL\) ((\d+)(?:\.\d+|beta\d+|rc\d+|devel)?)`).FindStringSubmatch(out)
	if m == nil {
		return "", 0, fmt.Errorf("not a version of PostgreSQL: %q", strings.TrimSpace(out))
	}
	major, err = strconv.Atoi(m[2])
	return m[1], major, err
}

// Indent formats a program's output for display below a line of error text.
func Indent(out string) string {
	out = strings.TrimSpace(out)
	if out == "" {
		return ""
	}
	return "\n\t" + strings.ReplaceAll(out, "\n", "\n\t")
}
