package databases

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"holdfast/engine/model"
)

func (s *Service) apiCertificateDir() string {
	return filepath.Join(s.core.Config.DataDir, "tls", "api")
}

// APICertificate returns the files of a certificate for the API, issued by the
// appliance's own authority and renewed before it expires.
func (s *Service) APICertificate() (certFile, keyFile string, err error) {
	s.apiCertificate.Lock()
	defer s.apiCertificate.Unlock()
	dir := s.apiCertificateDir()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", "", fmt.Errorf("make directory: %w", err)
	}
	if err := s.renewForAPI(dir); err != nil {
		return "", "", err
	}
	return filepath.Join(dir, "server.crt"), filepath.Join(dir, "server.key"), nil
}

// RenewAPICertificate renews the certificate that APICertificate issued, if it
// ever issued one.
func (s *Service) RenewAPICertificate() error {
	s.apiCertificate.Lock()
	defer s.apiCertificate.Unlock()
	_, err := os.Stat(s.apiCertificateDir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = s.renewForAPI(s.apiCertificateDir())
	}
	return err
}

func (s *Service) renewForAPI(dir string) error {
	renewed, err := s.renewCertificate(dir)
	if err == nil && renewed {
		s.core.Finish(s.core.System(model.ActionCertificateRenew, "", model.Resource{Name: "api"}), nil)
	}
	return err
}
