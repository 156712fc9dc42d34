package certificates_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/engine/certificates"
)

func TestCAIsKept(t *testing.T) {
	dir := t.TempDir()
	first, err := certificates.LoadOrCreateCA(dir)
	if err != nil {
		t.Fatal(err)
	}
	again, err := certificates.LoadOrCreateCA(dir)
	if err != nil || again.PEM() != first.PEM() {
		t.Errorf("another CA, %v", err)
	}
	if left := time.Until(first.NotAfter()); left < 9*365*24*time.Hour {
		t.Errorf("lasts %v", left)
	}
	info, err := os.Stat(filepath.Join(dir, "ca.key"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("key: %v, %v", info.Mode(), err)
	}
	other, err := certificates.LoadOrCreateCA(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "ca.crt"), []byte(other.PEM()), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := certificates.LoadOrCreateCA(dir); err == nil {
		t.Error("took a certificate with another's key")
	}
	if err := os.Remove(filepath.Join(dir, "ca.key")); err != nil {
		t.Fatal(err)
	}
	if _, err := certificates.LoadOrCreateCA(dir); err == nil {
		t.Error("made a new CA when the key was lost")
	}
}

func TestRead(t *testing.T) {
	ca, err := certificates.LoadOrCreateCA(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if _, err := certificates.Read(certificates.In(dir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("none there: %v", err)
	}
	if err := ca.Issue(certificates.In(dir), nil, time.Hour); err == nil {
		t.Error("issued for no host")
	}
	if err := ca.Issue(certificates.In(dir), []string{"db.example.org", "192.0.2.1", "2001:db8::1"}, 100*365*24*time.Hour); err != nil {
		t.Fatal(err)
	}
	c, err := certificates.Read(certificates.In(dir))
	if err != nil || !slices.Equal(c.SANs, []string{"db.example.org", "192.0.2.1", "2001:db8::1"}) || len(c.Fingerprint) != 64 ||
		!c.NotAfter.Equal(ca.NotAfter()) || !strings.Contains(c.Issuer, "holdfast CA") || !strings.Contains(c.Subject, "db.example.org") {
		t.Errorf("%+v, %v", c, err)
	}
	key := filepath.Join(dir, "server.key")
	info, err := os.Stat(key)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("key: %v, %v", info.Mode(), err)
	}
	other := t.TempDir()
	if err := ca.Issue(certificates.In(other), []string{"x"}, time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(other, "server.key"), key); err != nil {
		t.Fatal(err)
	}
	if _, err := certificates.Read(certificates.In(dir)); err == nil {
		t.Error("a crash between the two files is not seen")
	}
}
