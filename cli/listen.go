package cli

import (
	"crypto/tls"
	"fmt"
	"net"

	"holdfast/engine"
	"holdfast/server"
)

// sockets are what the appliance listens on.
type sockets struct {
	main    net.Listener
	objects net.Listener // nil when downloads have none of their own
}

func listen(c config) (s sockets, err error) {
	if s.main, err = server.Listen(c.Listen); err != nil {
		return s, fmt.Errorf("listen on %s: %w; --listen names another address", c.Listen, err)
	}
	if c.ObjectsListen == "" {
		return s, nil
	}
	if s.objects, err = server.Listen(c.ObjectsListen); err != nil {
		s.close()
		return s, fmt.Errorf("listen on %s: %w; --objects-listen names another address", c.ObjectsListen, err)
	}
	return s, nil
}

// close may come after the server has closed them, so that it has no news.
func (s sockets) close() {
	s.main.Close()
	if s.objects != nil {
		s.objects.Close()
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
