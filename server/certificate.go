package server

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// certificateCheck is the interval of checks for a renewed certificate.
const certificateCheck = time.Minute

// Certificate serves the certificate in two files, and reloads it when it is renewed. If a renewed pair does not
// match, the old one remains in use.
type Certificate struct {
	certFile, keyFile string
	log               *slog.Logger

	mu      sync.Mutex
	pair    *tls.Certificate
	written time.Time // of certFile when pair was read
	checked time.Time
	failure string // that was logged last, "" since a pair was read
}

// LoadCertificate reads the certificate and its key, both in PEM. The log is told of a renewed pair that cannot be read.
func LoadCertificate(certFile, keyFile string, log *slog.Logger) (*Certificate, error) {
	c := &Certificate{certFile: certFile, keyFile: keyFile, log: log}
	if err := c.read(); err != nil {
		return nil, fmt.Errorf("load TLS certificate: %w", err)
	}
	c.checked = time.Now()
	return c, nil
}

func (c *Certificate) read() error {
	info, err := os.Stat(c.certFile)
	if err != nil {
		return err
	}
	if c.pair != nil && info.ModTime().Equal(c.written) {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return err
	}
	c.pair, c.written = &pair, info.ModTime()
	return nil
}

// reload reads the pair if it is new. The old one is served until the new one is complete.
func (c *Certificate) reload() {
	err := c.read()
	if err == nil {
		c.failure = ""
		return
	}
	if text := err.Error(); text != c.failure { // once, and not every minute
		c.failure = text
		c.log.Warn("the TLS certificate cannot be loaded again: the one that was loaded last is served until it expires", "certificate", c.certFile, "error", err)
	}
}

// Config returns the configuration of a TLS listener: TLS 1.2 or newer.
func (c *Certificate) Config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			if now := time.Now(); now.Sub(c.checked) > certificateCheck {
				c.checked = now
				c.reload()
			}
			return c.pair, nil
		},
	}
}
