package cli

import (
	"crypto/tls"
	"fmt"
	"net"

	"holdfast/engine"
	"holdfast/server"
)

// sockets are what the appliance listens on; objects and metrics are nil when they
// have none of their own.
type sockets struct{ main, objects, metrics net.Listener }

// listen takes the addresses, which may need root.
func listen(c config) (s sockets, err error) {
	for _, wanted := range []struct {
		flag, address string
		socket        *net.Listener
	}{
		{"--listen", c.Listen, &s.main},
		{"--objects-listen", c.ObjectsListen, &s.objects},
		{"--metrics-listen", c.MetricsListen, &s.metrics},
	} {
		if wanted.address == "" && wanted.socket != &s.main {
			continue
		}
		if *wanted.socket, err = server.Listen(wanted.address); err != nil {
			s.close()
			return sockets{}, fmt.Errorf("listen on %s: %w; %s names another address", wanted.address, err, wanted.flag)
		}
	}
	return s, nil
}

// close may come after the server has closed them, so that it has no news.
func (s sockets) close() {
	for _, l := range []net.Listener{s.main, s.objects, s.metrics} {
		if l != nil {
			l.Close()
		}
	}
}

// withTLS puts TLS over the sockets when that was asked for.
func (s *sockets) withTLS(c config, eng *engine.Engine) error {
	if !c.https() {
		return nil
	}
	certFile, keyFile := c.TLSCert, c.TLSKey
	if c.TLS {
		var err error
		if certFile, keyFile, err = eng.Databases.APICertificate(); err != nil {
			return err
		}
	}
	certificate, err := server.LoadCertificate(certFile, keyFile)
	if err != nil {
		return err
	}
	s.main = tls.NewListener(s.main, certificate.Config())
	if s.objects != nil {
		s.objects = tls.NewListener(s.objects, certificate.Config())
	}
	return nil
}

// strictTransport is what browsers are told about HTTPS (RFC 6797), "" for
// nothing. With it no certificate warning can be passed, so it is never said of
// certificates from the appliance's own authority, which browsers do not know.
func (c config) strictTransport() string {
	if c.TLS {
		return ""
	}
	return fmt.Sprintf("max-age=%d", int64(c.HSTSMaxAge.Seconds()))
}

// objectsURL is what the URLs of objects begin with, "" when they have no
// origin of their own.
func (s sockets) objectsURL(c config) string {
	if c.ObjectsURL != "" || s.objects == nil {
		return c.ObjectsURL
	}
	return c.baseURL(c.ObjectsListen, s.objects.Addr())
}

// baseURL is how clients reach a socket that was asked for as asked: by the
// name they were told, or by the address listened on.
func (c config) baseURL(asked string, address net.Addr) string {
	scheme := "http"
	if c.https() {
		scheme = "https"
	}
	host, port, err := net.SplitHostPort(address.String())
	if err != nil {
		return scheme + "://" + asked
	}
	if name, _, err := net.SplitHostPort(asked); err == nil && name != "" {
		host = name
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = c.PublicHost
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}
