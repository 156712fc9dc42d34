package server

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestCertificateThatCannotBeReloaded: the log says once that a renewed certificate cannot be read, and the old one is served.
func TestCertificateThatCannotBeReloaded(t *testing.T) {
	t.Parallel()
	pair := testCertificates(t)[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile := filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	at := time.Now()
	write := func(path, kind string, content []byte) {
		t.Helper()
		at = at.Add(time.Second)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	write(certFile, "CERTIFICATE", pair.Certificate[0])
	write(keyFile, "PRIVATE KEY", key)
	var said bytes.Buffer
	c, err := LoadCertificate(certFile, keyFile, slog.New(slog.NewTextHandler(&said, nil)))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		write(certFile, "CERTIFICATE", []byte("half"))
		c.reload()
		c.reload()
		if n := strings.Count(said.String(), "cannot be loaded again"); n != 1 || c.pair == nil {
			t.Errorf("%d warnings: %s", n, said.String())
		}
		said.Reset()
		write(certFile, "CERTIFICATE", pair.Certificate[0])
		c.reload()
		if said.Len() > 0 {
			t.Errorf("a good one: %s", said.String())
		}
	}
}
