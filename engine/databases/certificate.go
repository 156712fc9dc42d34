package databases

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"holdfast/engine/certificates"
	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// certificateLife is how long an instance's certificate is valid.
const certificateLife = 397 * 24 * time.Hour

// certificateRenewal is how long before its expiry a certificate is renewed.
const certificateRenewal = 30 * 24 * time.Hour

// IssueCertificate issues a certificate into a data directory.
func (s *Service) IssueCertificate(dir string) error {
	return s.issueCertificate(certificates.InDataDirectory(dir))
}

func (s *Service) issueCertificate(at certificates.Place) error {
	if err := s.CA.Issue(at, s.instanceHosts(), certificateLife); err != nil {
		return fmt.Errorf("issue certificate: %w", err)
	}
	return nil
}

// instanceHosts returns every name and address of the instances, sorted.
func (s *Service) instanceHosts() []string {
	hosts := []string{s.core.Config.PublicHost, "localhost", "127.0.0.1", "::1"}
	for _, address := range s.core.Config.Listen {
		if ip := net.ParseIP(address); ip != nil && !ip.IsUnspecified() {
			hosts = append(hosts, ip.String())
		}
	}
	if ip := net.ParseIP(s.core.Config.PublicHost); ip != nil {
		hosts[0] = ip.String()
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// renewCertificate issues a resource's certificate if the current
// one is missing, expires soon or is for other hosts. It audits the renewal and
// reports whether it issued one.
func (s *Service) renewCertificate(at certificates.Place, organization string, resource model.Resource) (bool, error) {
	certificate, err := certificates.Read(at)
	if err == nil && s.isCurrent(certificate) {
		return false, nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		s.core.Log.Warn("the certificate is unusable: issuing another", "path", at.Certificate(), "error", err)
	}
	err = s.issueCertificate(at)
	s.core.Finish(s.core.System(model.ActionCertificateRenew, organization, resource), err)
	return true, err
}

// isCurrent reports whether a certificate is fresh and for the right hosts.
func (s *Service) isCurrent(c certificates.Certificate) bool {
	return s.isFresh(c) && slices.Equal(slices.Sorted(slices.Values(c.SANs)), s.instanceHosts())
}

// isFresh reports whether a certificate is valid and need not be renewed yet, or
// cannot be extended because the authority expires with it. One that was issued
// while the clock was ahead is not valid for everybody else.
func (s *Service) isFresh(c certificates.Certificate) bool {
	if s.core.Clock().Before(c.NotBefore) {
		return false
	}
	return s.core.Clock().Add(certificateRenewal).Before(c.NotAfter) || !c.NotAfter.Before(s.CA.NotAfter())
}

// RenewRunning renews the certificate of a running instance without dropping a
// session. It claims the database only if the certificate seems to need it: while
// it is claimed, requests wait.
func (s *Service) RenewRunning(ctx context.Context, db model.Database) error {
	if certificate, err := certificates.Read(s.certificateOf(db)); err == nil && s.isCurrent(certificate) {
		return nil
	}
	release, err := s.core.Claims.TakeBriefly(db.ID, "the renewal of its certificate")
	if err != nil {
		return nil // busy: the next sweep tries again
	}
	defer release()
	if db, err = s.Record(db.ID); err != nil {
		return err
	}
	if state, _, _ := s.Instances.Status(db.ID); state != postgres.StateRunning && state != postgres.StateAsleep {
		return nil
	}
	renewed, err := s.renewFor(db)
	if err != nil || !renewed {
		return err
	}
	if err := s.Instances.Reload(ctx, db.ID); err != nil {
		return fmt.Errorf("reload renewed certificate: %w", err)
	}
	return nil
}

// renewFor is renewCertificate for a database.
func (s *Service) renewFor(db model.Database) (bool, error) {
	return s.renewCertificate(s.certificateOf(db), db.Organization, DatabaseResource(db))
}

// certificateOf returns where a database's instance has its certificate.
func (s *Service) certificateOf(db model.Database) certificates.Place {
	return certificates.InDataDirectory(s.DataDirectory(db.ID, db.Generation))
}

// APICertificate returns the files of the API's certificate, which the appliance's
// own authority issues and which is renewed before it expires.
func (s *Service) APICertificate() (certFile, keyFile string, err error) {
	s.apiCertificate.Lock()
	defer s.apiCertificate.Unlock()
	dir := filepath.Join(s.authorityDir(), "api")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", "", fmt.Errorf("make directory: %w", err)
	}
	at := certificates.In(dir)
	_, err = s.renewCertificate(at, "", model.Resource{Name: "api"})
	return at.Certificate(), at.Key(), err
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
