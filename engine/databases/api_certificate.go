package databases

import (
	"fmt"
	"os"
	"path/filepath"

	"holdfast/engine/core"
	"holdfast/engine/model"
)

// APICertificate returns the files of a certificate for the API, issued by the
// appliance's own authority and renewed before it expires.
func (s *Service) APICertificate() (certFile, keyFile string, err error) {
	s.apiCertificate.Lock()
	defer s.apiCertificate.Unlock()
	dir := filepath.Join(s.authorityDir(), "api")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", "", fmt.Errorf("make directory: %w", err)
	}
	renewed, err := s.renewCertificate(dir)
	if err == nil && renewed {
		s.core.Finish(s.core.System(model.ActionCertificateRenew, "", model.Resource{Name: "api"}), nil)
	}
	return filepath.Join(dir, "server.crt"), filepath.Join(dir, "server.key"), err
}

// RenewAPICertificate renews the certificate that APICertificate issued, if it
// ever issued one.
func (s *Service) RenewAPICertificate() error {
	if core.Absent(s.authorityDir(), "api") {
		return nil
	}
	_, _, err := s.APICertificate()
	return err
}
