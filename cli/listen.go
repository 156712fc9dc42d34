package cli

import (
	"crypto/tls"
	"fmt"
	"net"

	"holdfast/engine"
	"holdfast/server"
)

// sockets are the appliance's listeners; objects, s3 and metrics are nil if they have
// no address of their own.
type sockets struct{ main, objects, s3, metrics net.Listener }

// listen binds the addresses, which may need root.
func listen(c config) (s sockets, err error) {
	for _, wanted := range []struct {
		flag, address string
		socket        *net.Listener
	}{
		{"--listen", c.Listen, &s.main},
		{"--objects-listen", c.ObjectsListen, &s.objects},
		{"--s3-listen", c.S3Listen, &s.s3},
		{"--metrics-listen", c.MetricsListen, &s.metrics},
	} {
		if wanted.address == "" && wanted.socket != &s.main {
			continue
		}
		if *wanted.socket, err = server.Listen(wanted.address, c.proxies); err != nil {
			s.close()
			return sockets{}, fmt.Errorf("listen on %s: %w; %s names another address", wanted.address, err, wanted.flag)
		}
	}
	return s, nil
}

// close ignores errors: the server may have closed the listeners already.
func (s sockets) close() {
	for _, l := range []net.Listener{s.main, s.objects, s.s3, s.metrics} {
		if l != nil {
			l.Close()
		}
	}
}

// withTLS wraps the main, objects and S3 listeners in TLS if it is configured.
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
	certificate, err := server.LoadCertificate(certFile, keyFile, eng.Core.Log)
	if err != nil {
		return err
	}
	s.main = tls.NewListener(s.main, certificate.Config())
	if s.objects != nil {
		s.objects = tls.NewListener(s.objects, certificate.Config())
	}
	if s.s3 != nil {
		s.s3 = tls.NewListener(s.s3, certificate.Config())
	}
	return nil
}

// strictTransport returns the Strict-Transport-Security header (RFC 6797), ""
// for none. Under HSTS, browsers do not let users bypass certificate warnings,
// so it is never sent with certificates from the appliance's own authority,
// which browsers do not trust.
func (c config) strictTransport() string {
	if c.TLS {
		return ""
	}
	return fmt.Sprintf("max-age=%d", int64(c.HSTSMaxAge.Seconds()))
}

// objectsURL returns the base URL of objects, "" if they have no origin of
// their own.
func (s sockets) objectsURL(c config) string {
	if c.ObjectsURL != "" || s.objects == nil {
		return c.ObjectsURL
	}
	return c.baseURL(c.ObjectsListen, s.objects.Addr())
}

// s3URL returns the base URL of the S3 endpoint, "" if there is none.
func (s sockets) s3URL(c config) string {
	if c.S3URL != "" || s.s3 == nil {
		return c.S3URL
	}
	return c.baseURL(c.S3Listen, s.s3.Addr())
}

// baseURL returns the URL by which clients reach a listener: with the
// configured name, or the address it is bound to.
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
