package engine

import (
	"os"
	"path/filepath"
	"slices"

	"holdfast/engine/connstring"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

func (e *Engine) authorityDir() string { return filepath.Join(e.cfg.DataDir, "tls") }

// CAFile is the file with the certificate of the appliance's own authority.
func (e *Engine) CAFile() string { return filepath.Join(e.authorityDir(), "ca.crt") }

// loadAuthority reads the appliance's authority, or makes it, and bounds it to
// the hosts that the appliance serves: a thief of its key can then impersonate
// nothing else to clients that apply the bounds.
//
// An authority has no bounds while only this machine can reach the appliance.
// Clients that have its certificate from then would otherwise refuse the
// appliance once it gets a public name: they apply the bounds they have.
func (e *Engine) loadAuthority() (err error) {
	if e.ca, err = postgres.LoadOrCreateCA(e.authorityDir()); err != nil {
		return err
	}
	hosts := e.instanceHosts()
	if !slices.ContainsFunc(hosts, func(host string) bool { return !connstring.IsLoopback(host) }) || e.ca.Bounded() && e.ca.Covers(hosts) {
		return nil
	}
	widened := e.ca.Bounded()
	if name, err := os.Hostname(); err == nil && model.IsHostName(name) {
		hosts = append(hosts, name) // the name that the machine is given next, as a rule
	}
	if e.ca, err = e.ca.Bound(e.authorityDir(), hosts); err != nil {
		return err
	}
	e.Finish(e.system(model.ActionCertificateRenew, "", model.Resource{Name: "ca"}), nil)
	if widened {
		e.log.Warn("the authority's certificate did not cover the hosts that are served now and was issued again: "+
			"give it to clients that verify the server", "file", e.CAFile(), "hosts", hosts)
	}
	return nil
}
