package databases

import (
	"os"
	"path/filepath"
	"slices"

	"holdfast/engine/certificates"
	"holdfast/engine/connstring"
	"holdfast/engine/model"
)

func (s *Service) authorityDir() string { return filepath.Join(s.core.Config.DataDir, "tls") }

// CAFile returns the path of the certificate of the appliance's own authority.
func (s *Service) CAFile() string { return filepath.Join(s.authorityDir(), "ca.crt") }

// loadAuthority reads or creates the appliance's authority and limits it to the
// hosts that the appliance serves (name constraints): an attacker with a stolen key
// cannot impersonate other hosts to clients that check the constraints.
//
// While only this machine can reach the appliance, the authority has no
// constraints. Otherwise clients that already have its certificate would refuse the
// appliance once it gets a public name.
func (s *Service) loadAuthority() (err error) {
	if s.CA, err = certificates.LoadOrCreateCA(s.authorityDir()); err != nil {
		return err
	}
	hosts := s.instanceHosts()
	if !slices.ContainsFunc(hosts, func(host string) bool { return !connstring.IsLoopback(host) }) || s.CA.Bounded() && s.CA.Covers(hosts) {
		return nil
	}
	widened := s.CA.Bounded()
	if name, err := os.Hostname(); err == nil && model.IsHostName(name) {
		hosts = append(hosts, name) // most likely the next public name
	}
	if s.CA, err = s.CA.Bound(s.authorityDir(), hosts); err != nil {
		return err
	}
	s.core.Finish(s.core.System(model.ActionCertificateRenew, "", model.Resource{Name: "ca"}), nil)
	if widened {
		s.core.Log.Warn("the authority's certificate did not cover the hosts that are served now and was issued again: "+
			"give it to clients that verify the server", "file", s.CAFile(), "hosts", hosts)
	}
	return nil
}
