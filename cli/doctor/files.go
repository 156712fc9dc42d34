package doctor

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// secretFiles returns the files in the data directory that only their owner may
// read.
func secretFiles() []string { return []string{"holdfast.db", "secret.key", "tls/ca.key"} }

// checkDataDirectory checks the permissions of the data directory.
func checkDataDirectory(_ context.Context, opts Options) []Finding {
	const check = "data directory"
	info, err := os.Stat(opts.DataDir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return checkMaking(check, opts)
	case err != nil:
		return one(Finding{check, Problem, err.Error(), "see that the parent directories can be entered, or name another with --data-dir"})
	case !info.IsDir():
		return one(Finding{check, Problem, opts.DataDir + " is not a directory", "name another with --data-dir"})
	}
	var found []Finding
	if open := info.Mode().Perm() & 0o077; open != 0 {
		found = append(found, Finding{
			check, Warning, fmt.Sprintf("%s can be entered by others (mode %04o)", opts.DataDir, info.Mode().Perm()),
			"chmod 0700 " + opts.DataDir,
		})
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != os.Geteuid() {
		found = append(found, Finding{
			check, Problem, fmt.Sprintf("%s belongs to user %d, and this is user %d", opts.DataDir, stat.Uid, os.Geteuid()),
			"run as its owner, or as root",
		})
	}
	found = append(found, checkWritable(check, opts.DataDir)...)
	found = append(found, checkSecrets(opts.DataDir)...)
	if len(found) == 0 {
		found = one(Finding{Check: check, Level: OK, Detail: opts.DataDir})
	}
	return found
}

// checkMaking reports whether the first start can create the data directory.
func checkMaking(check string, opts Options) []Finding {
	if opts.making != nil {
		return one(Finding{
			check, Problem, opts.DataDir + " cannot be made: " + opts.making.Error(),
			"make it and give it to the user the appliance runs as, or name another with --data-dir",
		})
	}
	return one(Finding{Check: check, Level: OK, Detail: opts.DataDir + " is made by the first start"})
}

// nearest returns path, or its nearest ancestor that exists.
func nearest(path string) string {
	for path != filepath.Dir(path) {
		if _, err := os.Stat(path); err == nil {
			break
		}
		path = filepath.Dir(path)
	}
	return path
}

// access returns the error that keeps this process from using a file.
func access(path string, mode uint32) error {
	if err := unix.Access(path, mode); err != nil {
		return &fs.PathError{Op: "access", Path: path, Err: err}
	}
	return nil
}

// checkCertificate loads the given certificate as the appliance does.
func checkCertificate(_ context.Context, opts Options) []Finding {
	const check = "certificate"
	if opts.TLSCert == "" {
		return nil
	}
	if _, err := tls.LoadX509KeyPair(opts.TLSCert, opts.TLSKey); err != nil {
		return one(Finding{check, Problem, err.Error(), "correct --tls-cert and --tls-key: PEM files that the user the appliance runs as can read"})
	}
	return one(Finding{Check: check, Level: OK, Detail: opts.TLSCert})
}

// checkWebhookSecret checks that the file can be read or, if absent, created.
func checkWebhookSecret(_ context.Context, opts Options) []Finding {
	const check = "webhook secret"
	dir := filepath.Dir(opts.WebhookSecret)
	if opts.WebhookSecret == "" || dir == opts.DataDir {
		return nil
	}
	err := access(opts.WebhookSecret, unix.R_OK)
	if errors.Is(err, fs.ErrNotExist) {
		err = access(dir, unix.W_OK|unix.X_OK)
	}
	if err != nil {
		return one(Finding{check, Problem, err.Error(), "correct --webhook-secret-file, or leave it out"})
	}
	return one(Finding{Check: check, Level: OK, Detail: opts.WebhookSecret})
}

// checkWritable creates a file and removes it.
func checkWritable(check, dir string) []Finding {
	probe, err := os.CreateTemp(dir, "doctor-")
	if err == nil {
		err = errors.Join(probe.Close(), os.Remove(probe.Name()))
	}
	if err != nil {
		return one(Finding{check, Problem, "cannot be written: " + err.Error(), "free disk space, or give the directory to the user the appliance runs as"})
	}
	return nil
}

func checkSecrets(dir string) []Finding {
	var found []Finding
	there := map[string]bool{}
	for _, name := range secretFiles() {
		path := filepath.Join(dir, name)
		info, err := os.Stat(path)
		if err != nil {
			continue
		}
		there[name] = true
		if info.Mode().Perm()&0o077 != 0 {
			found = append(found, Finding{"file permissions", Problem, fmt.Sprintf("others can read %s (mode %04o)", path, info.Mode().Perm()), "chmod 0600 " + path})
		}
	}
	if there["holdfast.db"] != there["secret.key"] {
		found = append(found, Finding{
			"data directory", Problem, "of holdfast.db and secret.key one is missing: nothing in here can be opened without both",
			"bring the missing file back from where it was copied to",
		})
	}
	return found
}
