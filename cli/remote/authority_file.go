package remote

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"

	"github.com/spf13/cobra"

	"holdfast/cli/client"
	"holdfast/internal/durable"
	"holdfast/server/api/wire"
)

// authorityFile is the file for the certificate of an appliance's authority,
// for programs that verify the server.
type authorityFile struct{ path string }

func (a *authorityFile) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.path, "ca-file", "", "where to write the authority's certificate (default: ca/APPLIANCE.crt in the directory of the profiles)")
}

// connection writes the file and returns a connection whose strings name it.
func (a *authorityFile) connection(t *task, database string) (wire.Connection, error) {
	var err error
	if a.path, err = a.resolve(t.connection.base); err != nil {
		return wire.Connection{}, err
	}
	c, err := t.databaseConnection(database, client.ConnectionOptions{CAFile: a.path})
	if err != nil {
		return c, err
	}
	return c, writeAuthority(a.path, c.CACertificate)
}

// writeAuthority writes the certificate to the file. An existing file must hold
// an authority's older certificate and nothing else.
func writeAuthority(path, certificate string) error {
	existing, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("read the file for the authority's certificate: %w", err)
	case string(existing) == certificate:
		return nil
	case !isAuthority(existing):
		return usagef("ca-file: %s is not the certificate of an appliance's authority; name another file", path)
	}
	return durable.WriteFile(path, []byte(certificate), 0o644)
}

// isAuthority reports whether text is the certificate of an appliance's
// authority and nothing else.
func isAuthority(text []byte) bool {
	block, rest := pem.Decode(text)
	if block == nil || len(bytes.TrimSpace(rest)) > 0 {
		return false
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	return err == nil && certificate.IsCA && certificate.Subject.CommonName == "holdfast CA"
}

var notInFileName = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

// resolve returns the file's absolute path. By default each appliance has its
// own file, named after its API's host and port.
func (a *authorityFile) resolve(base string) (string, error) {
	if a.path != "" {
		return filepath.Abs(a.path)
	}
	dir, err := configDir()
	if err != nil {
		return "", err
	}
	address, err := url.Parse(base)
	if err != nil {
		return "", fmt.Errorf("name the authority's file: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "ca"), 0o700); err != nil {
		return "", fmt.Errorf("make the directory of authorities: %w", err)
	}
	return filepath.Join(dir, "ca", notInFileName.ReplaceAllString(address.Host, "_")+".crt"), nil
}
