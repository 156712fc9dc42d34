package certificates

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"holdfast/internal/durable"
)

// Names of the CA's files. The key is written first, so that a certificate
// without its key is never visible.
const (
	caCertificateFile = "ca.crt"
	caKeyFile         = "ca.key"
)

// Names of the files of an issued certificate, in its [Place].
const (
	File    = "server.crt"
	KeyFile = "server.key"
)

// ServerKeyFile is the path of the key in a data directory. A role that may replicate can have the server send its
// data directory (BASE_BACKUP), and the key is good for every name of the appliance. PostgreSQL leaves out what
// pg_replslot contains, and ignores files there.
const ServerKeyFile = "pg_replslot/" + KeyFile

// Place is where the files of a certificate are.
type Place struct{ dir, key string }

// In returns the place of a certificate and its key in a directory.
func In(dir string) Place { return Place{dir, KeyFile} }

// InDataDirectory returns the place of a server's certificate in its data directory.
func InDataDirectory(dir string) Place { return Place{dir, ServerKeyFile} }

// Certificate returns the path of the certificate.
func (p Place) Certificate() string { return filepath.Join(p.dir, File) }

// Key returns the path of the key.
func (p Place) Key() string { return filepath.Join(p.dir, p.key) }

// caValidFor is the validity of the appliance's own CA. Clients that pin it need
// a new one before then.
const caValidFor = 10 * 365 * 24 * time.Hour

// CA is the appliance's own certificate authority (ECDSA P-256). Its files are in
// one directory; only their owner can read the key.
type CA struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         string
}

// Certificate describes an instance's certificate to people.
type Certificate struct {
	Subject     string
	Issuer      string
	SANs        []string // host names, then addresses
	NotBefore   time.Time
	NotAfter    time.Time
	Fingerprint string // SHA-256 of the DER form, lower-case hex
}

// LoadOrCreateCA reads the CA in dir, or creates it if there is none. A
// certificate whose key is missing or does not match is an error: a new CA would
// silently break every client that trusts the old one. If only the certificate is
// missing, LoadOrCreateCA issues a new one for the existing key.
func LoadOrCreateCA(dir string) (CA, error) {
	certPEM, err := os.ReadFile(filepath.Join(dir, caCertificateFile))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return createCA(dir)
	case err != nil:
		return CA{}, fmt.Errorf("read CA certificate: %w", err)
	}
	keyPEM, err := os.ReadFile(filepath.Join(dir, caKeyFile))
	if err != nil {
		return CA{}, fmt.Errorf("read CA key: %w", err)
	}
	return parseCA(certPEM, keyPEM)
}

// createCA creates a CA. It uses the existing key, if there is one, so that
// clients that trust a certificate of that key still recognize the appliance.
func createCA(dir string) (CA, error) {
	key, err := loadOrCreateKey(filepath.Join(dir, caKeyFile))
	if err != nil {
		return CA{}, err
	}
	template := caTemplate(time.Now())
	certPEM, keyPEM, err := sign(template, template, key, key)
	if err != nil {
		return CA{}, fmt.Errorf("make CA: %w", err)
	}
	if err := durable.WriteFile(filepath.Join(dir, caCertificateFile), certPEM, 0o644); err != nil {
		return CA{}, err
	}
	return parseCA(certPEM, keyPEM)
}

// caTemplate is the certificate of a CA that may issue for servers but not for
// other CAs.
func caTemplate(now time.Time) *x509.Certificate {
	template := certificateTemplate("holdfast CA", now, caValidFor)
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.MaxPathLenZero = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	return template
}

func loadOrCreateKey(path string) (*ecdsa.PrivateKey, error) {
	keyPEM, err := os.ReadFile(path)
	if err == nil {
		return parseKey(keyPEM)
	}
	if !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("read CA key: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make CA key: %w", err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("make CA key: %w", err)
	}
	return key, durable.WriteFile(path, encodeKey(keyDER), 0o600)
}

// parseCA parses a certificate and its key, which must match.
func parseCA(certPEM, keyPEM []byte) (CA, error) {
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return CA{}, fmt.Errorf("read certificate and key: %w", err)
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return CA{}, errors.New("read key: not an ECDSA key")
	}
	return CA{pair.Leaf, key, string(certPEM)}, nil
}

func parseKey(keyPEM []byte) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode(keyPEM)
	if block == nil {
		return nil, errors.New("read CA key: not PEM")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("read CA key: %w", err)
	}
	ec, ok := key.(*ecdsa.PrivateKey)
	if !ok {
		return nil, errors.New("read CA key: not an ECDSA key")
	}
	return ec, nil
}

// PEM returns the CA's certificate, which clients may trust.
func (ca CA) PEM() string { return ca.pem }

// NotAfter returns when the CA's certificate expires.
func (ca CA) NotAfter() time.Time { return ca.certificate.NotAfter }

// Issue writes a new key and a certificate for hosts (names and addresses) to
// their place. A running instance loads
// them at the next reload, without dropping a session. The certificate does not
// outlive the CA. Issue fails if clients would not accept the certificate for all
// of hosts.
func (ca CA) Issue(at Place, hosts []string, validFor time.Duration) error {
	if len(hosts) == 0 {
		return errors.New("issue certificate: no host names or addresses")
	}
	if !ca.Covers(hosts) {
		return fmt.Errorf("issue certificate: the CA's certificate does not cover all of %s", strings.Join(hosts, ", "))
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("issue certificate: %w", err)
	}
	template := certificateTemplate(commonName(hosts), time.Now(), validFor)
	if template.NotAfter.After(ca.certificate.NotAfter) {
		template.NotAfter = ca.certificate.NotAfter
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	addHosts(template, hosts)
	certPEM, keyPEM, err := sign(template, ca.certificate, key, ca.key)
	if err != nil {
		return fmt.Errorf("issue certificate: %w", err)
	}
	return publishPair(at, certPEM, keyPEM)
}

// commonName returns the first host that is a name. If a certificate has no DNS
// names, OpenSSL treats its common name as one, and a CA's name constraints never
// cover an address used as a name.
func commonName(hosts []string) string {
	for _, host := range hosts {
		if net.ParseIP(host) == nil {
			return host
		}
	}
	return "holdfast server"
}

// publishPair publishes both files with as little time in between as two renames
// allow: every step that may fail or take long comes before the first. A crash
// between them leaves a pair that does not match; Read reports that,
// and the remedy is to issue again.
func publishPair(at Place, certPEM, keyPEM []byte) error {
	cert, key := at.Certificate(), at.Key()
	if err := durable.Stage(key, keyPEM, 0o600); err != nil {
		return err
	}
	if err := durable.Stage(cert, certPEM, 0o600); err != nil {
		return err
	}
	if err := errors.Join(durable.Commit(key), durable.Commit(cert)); err != nil {
		return err
	}
	if old := filepath.Join(at.dir, KeyFile); old != key { // where older versions had it
		if err := os.Remove(old); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove the replaced key: %w", err)
		}
	}
	return nil
}

// addHosts adds each host to the SAN type in which verifiers look for it.
func addHosts(template *x509.Certificate, hosts []string) {
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
}

func certificateTemplate(name string, now time.Time, validFor time.Duration) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)) // crypto/rand does not fail
	if len(name) > 64 {
		name = name[:64] // X.520's limit for a common name
	}
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name, Organization: []string{"holdfast"}},
		NotBefore:    now.Add(-time.Hour), // allows for clock skew
		NotAfter:     now.Add(validFor),
	}
}

// sign returns the certificate and its key in PEM.
func sign(template, parent *x509.Certificate, key *ecdsa.PrivateKey, signer crypto.Signer) (certPEM, keyPEM []byte, err error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	certPEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return certPEM, encodeKey(keyDER), nil
}

func encodeKey(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// Read reads a certificate. The error is os.ErrNotExist if there is none, and says
// so if the key does not match it; in both cases the remedy is to issue another.
func Read(at Place) (Certificate, error) {
	certPEM, err := os.ReadFile(at.Certificate())
	if err != nil {
		return Certificate{}, fmt.Errorf("read certificate: %w", err)
	}
	keyPEM, err := os.ReadFile(at.Key())
	if err != nil {
		return Certificate{}, fmt.Errorf("read certificate's key: %w", err)
	}
	pair, err := parseCA(certPEM, keyPEM)
	if err != nil {
		return Certificate{}, err
	}
	return describe(pair.certificate), nil
}

func describe(cert *x509.Certificate) Certificate {
	sum := sha256.Sum256(cert.Raw)
	sans := append([]string{}, cert.DNSNames...)
	for _, ip := range cert.IPAddresses {
		sans = append(sans, ip.String())
	}
	return Certificate{
		Subject: cert.Subject.String(), Issuer: cert.Issuer.String(), SANs: sans,
		NotBefore: cert.NotBefore, NotAfter: cert.NotAfter, Fingerprint: hex.EncodeToString(sum[:]),
	}
}
