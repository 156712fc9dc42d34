package remote

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"holdfast/cli/client"
)

// Environment variables that replace flags and, for the key, a profile.
const (
	variableURL     = "HOLDFAST_URL"
	variableKey     = "HOLDFAST_API_KEY"
	variableProfile = "HOLDFAST_PROFILE"
	variableProject = "HOLDFAST_PROJECT"
	variableCA      = "HOLDFAST_CA_CERT"
)

// defaultURL is the default address of `holdfast serve`.
const defaultURL = "http://127.0.0.1:8432"

// session holds the flags common to all commands.
type session struct {
	userAgent string

	url, profile, project, caFile string
	json, yes                     bool

	requestID atomic.Pointer[string] // of the API's last response
}

func (s *session) register(cmd *cobra.Command) {
	flags := cmd.PersistentFlags()
	flags.StringVar(&s.url, "url", "", "the appliance (default: the profile's, else "+defaultURL+"); "+variableURL)
	flags.StringVar(&s.profile, "profile", "", "the profile with the key (default: the one in use); "+variableProfile)
	flags.StringVar(&s.project, "project", "", "id or name of the project; "+variableProject)
	flags.StringVar(&s.caFile, "ca-cert", "", "certificate of the authority to trust, a PEM file; "+variableCA)
	flags.BoolVar(&s.json, "json", false, "print JSON as the API answers it: {\"data\": …, \"meta\": …}")
	flags.BoolVarP(&s.yes, "yes", "y", false, "do not ask before data is replaced or deleted")
	flagWords(cmd, "profile", completeProfiles)
	flagWords(cmd, "project", s.complete(projectNames))
}

// task is one run of a command.
type task struct {
	*session
	cmd        *cobra.Command
	ctx        context.Context
	api        *client.Client
	connection connection
}

// command returns a command that needs a key.
func (s *session) command(use, short string, args cobra.PositionalArgs, do func(*task, []string) error) *cobra.Command {
	return s.local(use, short, args, func(t *task, args []string) error {
		if err := t.connect(); err != nil {
			return err
		}
		return t.explain(do(t, args))
	})
}

// local returns a command that needs no key.
func (s *session) local(use, short string, args cobra.PositionalArgs, do func(*task, []string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short,
		Args: args,
		RunE: func(cmd *cobra.Command, args []string) error {
			return do(&task{session: s, cmd: cmd, ctx: cmd.Context()}, args)
		},
	}
}

// connection is an appliance's address and the key for it.
type connection struct {
	base    string // with the version
	key     string
	ca      string // PEM, "" for the system's authorities
	profile string // the source of the key, "" for the environment
	project string // the profile's
}

// connect chooses the appliance and the key, and creates the client.
func (t *task) connect() error {
	c, err := t.resolve()
	if err != nil {
		return err
	}
	if c.key == "" {
		return failf(exitKey, "there is no API key for %s; `holdfast login` gets one, or set %s", c.base, variableKey)
	}
	t.connection = c
	t.api, err = t.client(c)
	return err
}

// resolve chooses the appliance and the key. It sends a profile's key only to
// the profile's appliance. If both the address and the key come from elsewhere,
// no profile is read.
func (s *session) resolve() (connection, error) {
	c := connection{key: strings.TrimSpace(os.Getenv(variableKey))}
	address := flagOr(s.url, variableURL)
	var name string
	var p profile
	var err error
	if s.profile != "" || c.key == "" || address == "" {
		if name, p, err = s.loadProfile(); err != nil {
			return connection{}, err
		}
		c.ca, c.project = p.CACertificate, p.Project
	}
	if s.profile != "" || c.key == "" {
		c.key, c.profile = p.APIKey, name
	}
	if c.base, err = s.address(address, p); err != nil {
		return c, err
	}
	if c.profile != "" && c.key != "" && c.base != p.URL {
		return c, failf(exitKey, "the key of profile %s is for %s, not for %s; `holdfast login --url %s --profile NAME` gets one, or set %s",
			name, p.URL, c.base, address, variableKey)
	}
	if file := flagOr(s.caFile, variableCA); file != "" {
		if c.ca, err = readCA(file); err != nil {
			return c, err
		}
	}
	return c, nil
}

func readCA(file string) (string, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return "", usagef("ca-cert: %v", err)
	}
	return string(pem), nil
}

func (s *session) address(given string, p profile) (string, error) {
	if given == "" {
		given = p.URL
	}
	if given == "" {
		given = defaultURL
	}
	base, err := client.BaseURL(given)
	if err != nil {
		return "", usagef("url: %v", err)
	}
	return base, nil
}

// flagOr returns a flag's value, else the environment variable's.
func flagOr(flag, variable string) string {
	if flag != "" {
		return flag
	}
	return os.Getenv(variable)
}

func (s *session) client(c connection) (*client.Client, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ExpectContinueTimeout = 5 * time.Second
	if c.ca != "" {
		pool, err := x509.SystemCertPool()
		if err != nil {
			return nil, fmt.Errorf("read the system's authorities: %w", err)
		}
		if !pool.AppendCertsFromPEM([]byte(c.ca)) {
			return nil, usagef("ca-cert: holds no certificate in PEM")
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	return client.New(client.Config{URL: c.base, Key: c.key, HTTP: &noting{transport, &s.requestID}, UserAgent: s.userAgent})
}

// noting stores the id of the last request that the API answered.
type noting struct {
	http.RoundTripper
	last *atomic.Pointer[string]
}

// RoundTrip implements http.RoundTripper.
func (n *noting) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := n.RoundTripper.RoundTrip(r)
	if err == nil && answer.Header.Get("X-Request-Id") != "" {
		n.last.Store(new(answer.Header.Get("X-Request-Id")))
	}
	return answer, err
}

// loadProfile returns the selected profile; one that was not named need not
// exist.
func (s *session) loadProfile() (string, profile, error) {
	name := flagOr(s.profile, variableProfile)
	named := name != ""
	if !named {
		name = currentProfile()
	}
	p, err := readProfile(name)
	if errors.Is(err, os.ErrNotExist) {
		if named && os.Getenv(variableKey) == "" {
			return name, p, failf(exitKey, "there is no profile %s; `holdfast login --profile %s` makes it, `holdfast profile list` shows what there is", name, name)
		}
		return name, profile{}, nil
	}
	return name, p, err
}
