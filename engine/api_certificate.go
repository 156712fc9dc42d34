package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"holdfast/engine/model"
)

func (e *Engine) apiCertificateDir() string { return filepath.Join(e.cfg.DataDir, "tls", "api") }

// APICertificate returns the files of a certificate for the API from the
// appliance's own authority, which is renewed in good time.
func (e *Engine) APICertificate() (certFile, keyFile string, err error) {
	e.apiCertificate.Lock()
	defer e.apiCertificate.Unlock()
	dir := e.apiCertificateDir()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", "", fmt.Errorf("make directory: %w", err)
	}
	if err := e.renewForAPI(dir); err != nil {
		return "", "", err
	}
	return filepath.Join(dir, "server.crt"), filepath.Join(dir, "server.key"), nil
}

// renewAPICertificate renews what APICertificate once made.
func (e *Engine) renewAPICertificate() error {
	e.apiCertificate.Lock()
	defer e.apiCertificate.Unlock()
	_, err := os.Stat(e.apiCertificateDir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = e.renewForAPI(e.apiCertificateDir())
	}
	return err
}

func (e *Engine) renewForAPI(dir string) error {
	renewed, err := e.renewCertificate(dir)
	if err == nil && renewed {
		e.Finish(e.system(model.ActionCertificateRenew, "", model.Resource{Name: "api"}), nil)
	}
	return err
}
