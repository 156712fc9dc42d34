package binaries

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// layout says where an installation keeps its parts. PostgreSQL finds them from
// the path of its program (src/port/path.c, make_relative_path), as long as their
// paths below the common prefix stay the same.
type layout struct {
	prefix string   // the directories' common prefix
	bindir string   // of the programs, relative to prefix
	dirs   []string // what to pack, absolute
}

func layoutOf(ctx context.Context, bin Set) (layout, error) {
	dirs := []string{bin.Dir}
	for _, option := range []string{"--pkglibdir", "--sharedir"} {
		out, err := bin.run(ctx, "pg_config", option)
		if err != nil {
			return relocatable(bin)
		}
		dirs = append(dirs, strings.TrimSpace(out))
	}
	prefix := bin.Dir
	for _, dir := range dirs {
		for prefix != "/" && !strings.HasPrefix(dir+"/", prefix+"/") {
			prefix = filepath.Dir(prefix)
		}
	}
	bindir, err := filepath.Rel(prefix, bin.Dir)
	return layout{prefix, bindir, dirs}, err
}

// relocatable returns the layout of an archive without pg_config, such as
// embedded-postgres's: bin, lib and share side by side.
func relocatable(bin Set) (layout, error) {
	l := layout{prefix: filepath.Dir(bin.Dir), bindir: filepath.Base(bin.Dir)}
	for _, name := range []string{l.bindir, "lib", "share"} {
		dir := filepath.Join(l.prefix, name)
		if _, err := os.Stat(dir); err != nil {
			return layout{}, fmt.Errorf("neither pg_config nor the usual layout: %w", err)
		}
		l.dirs = append(l.dirs, dir)
	}
	return l, nil
}

// neededLibraries returns the shared libraries that the objects need, as this
// machine's dynamic linker finds them.
func neededLibraries(ctx context.Context, bin Set, objects []string) ([]string, error) {
	cmd := exec.CommandContext(ctx, "ldd", objects...)
	cmd.Env, cmd.Dir = bin.Env(), "/"
	out, err := cmd.Output() // ldd fails if a file is a script and not an object
	if len(out) == 0 {
		return nil, fmt.Errorf("find shared libraries: ldd: %w", err)
	}
	found := map[string]string{}
	for line := range strings.Lines(string(out)) {
		// "\tlibz.so.1 => /lib/x86_64-linux-gnu/libz.so.1 (0x00007f...)"
		name, rest, arrow := strings.Cut(strings.TrimSpace(line), " => ")
		path, _, _ := strings.Cut(rest, " (")
		if arrow && filepath.IsAbs(path) && !isPartOfGlibc(name) {
			found[name] = path
		}
	}
	return slices.Sorted(maps.Values(found)), nil
}

// isPartOfGlibc reports whether a library is part of glibc, which works only with
// the kernel and the dynamic linker of its own machine.
func isPartOfGlibc(name string) bool {
	for _, prefix := range []string{"ld-linux", "libc.so", "libm.so", "libdl.so", "libpthread.so", "librt.so", "libresolv.so", "libutil.so", "libnss_", "linux-vdso"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// licences returns the licences of the files, by package, as far as Debian's
// package manager knows them; PostgreSQL's own is always included.
func licences(ctx context.Context, files []string) map[string][]byte {
	texts := map[string][]byte{"postgresql-licence": []byte(postgresLicence)}
	args := []string{"-S"}
	for _, file := range files {
		args = append(args, file)
		if real, err := filepath.EvalSymlinks(file); err == nil {
			args = append(args, real)
		}
	}
	out, _ := exec.CommandContext(ctx, "dpkg-query", args...).Output()
	for line := range strings.Lines(string(out)) {
		// "libzstd1:amd64: /usr/lib/x86_64-linux-gnu/libzstd.so.1"
		name, _, _ := strings.Cut(line, ":")
		text, err := os.ReadFile(filepath.Join("/usr/share/doc", name, "copyright"))
		if err == nil {
			texts[name] = text
		}
	}
	return texts
}

// postgresLicence is the PostgreSQL Licence, which all copies must include.
const postgresLicence = `PostgreSQL Database Management System
(also known as Postgres, formerly known as Postgres95)

Portions Copyright (c) 1996-2026, PostgreSQL Global Development Group

Portions Copyright (c) 1994, The Regents of the University of California

Permission to use, copy, modify, and distribute this software and its
documentation for any purpose, without fee, and without a written agreement
is hereby granted, provided that the above copyright notice and this
paragraph and the following two paragraphs appear in all copies.

IN NO EVENT SHALL THE UNIVERSITY OF CALIFORNIA BE LIABLE TO ANY PARTY FOR
DIRECT, INDIRECT, SPECIAL, INCIDENTAL, OR CONSEQUENTIAL DAMAGES, INCLUDING
LOST PROFITS, ARISING OUT OF THE USE OF THIS SOFTWARE AND ITS
DOCUMENTATION, EVEN IF THE UNIVERSITY OF CALIFORNIA HAS BEEN ADVISED OF THE
POSSIBILITY OF SUCH DAMAGE.

THE UNIVERSITY OF CALIFORNIA SPECIFICALLY DISCLAIMS ANY WARRANTIES,
INCLUDING, BUT NOT LIMITED TO, THE IMPLIED WARRANTIES OF MERCHANTABILITY
AND FITNESS FOR A PARTICULAR PURPOSE.  THE SOFTWARE PROVIDED HEREUNDER IS
ON AN "AS IS" BASIS, AND THE UNIVERSITY OF CALIFORNIA HAS NO OBLIGATIONS TO
PROVIDE MAINTENANCE, SUPPORT, UPDATES, ENHANCEMENTS, OR MODIFICATIONS.
`
