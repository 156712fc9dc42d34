package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/spf13/pflag"

	"holdfast/engine/core"
	"holdfast/engine/model"
)

// config holds all settings. Each comes from a flag, a HOLDFAST_* variable or
// the config file, in this order of precedence.
type config struct {
	core.Config // the settings that the engine uses

	ConfigFile      string
	Listen          string
	ObjectsListen   string
	ObjectsURL      string
	S3Listen        string
	S3URL           string
	S3WebsiteURL    string
	PublicURL       string
	InsecureHTTP    bool
	TrustedProxies  []string
	ForwardedHeader string
	TLS             bool
	TLSCert, TLSKey string
	HSTSMaxAge      time.Duration
	PostgresPorts   string
	User            string
	LogFormat       string
	LogLevel        string
	NoFirstKey      bool
	NoExports       bool
	NoVerification  bool
	// NoOffsiteVerification turns the daily sample and the weekly trial restore of the copy off.
	NoOffsiteVerification bool
	MetricsListen         string

	OffsitePassphraseFile, OffsiteIdentityFile string
	ObjectsLocalSize                           string

	Budgets          []string
	DefaultAllowlist []string

	// prepare fills the data directory before it is opened; nil for nothing.
	prepare func(*slog.Logger) error
	// told receives the appliance's events; nil for nobody.
	told func(model.Event)

	proxies []netip.Prefix // TrustedProxies, parsed

	private bool // the appliance belongs to the user of `run`, see run_private.go

	serves bool   // validate checks the settings of serve too
	runsAs choice // the user that serve switched to, once it has
}

// Defaults that other texts mention.
const (
	defaultListen = "127.0.0.1:8432"
	defaultPorts  = "7432-7931"
	rootDataDir   = "/var/lib/holdfast"
)

// The values of --forwarded-header.
const (
	forwardedFor      = "X-Forwarded-For"
	forwardedStandard = "Forwarded"
)

// loopback returns the default allowlist of a new database.
func loopback() []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
}

// registerCommon declares the settings of every command.
func (c *config) registerCommon(flags *pflag.FlagSet) {
	flags.StringVar(&c.ConfigFile, "config", "", "config file in TOML; keys are the flags' names with underscores")
	flags.StringVar(&c.DataDir, "data-dir", defaultDataDir(), "directory that holds everything")
	flags.StringVar(&c.User, "user", "", "as root: the user to become (default: the data directory's owner, else holdfast, which is made for a new /var/lib/holdfast, else postgres or nobody)")
}

// registerPostgres declares the settings that locate PostgreSQL.
func (c *config) registerPostgres(flags *pflag.FlagSet) {
	flags.StringVar(&c.Search.Explicit, "postgres-bin", "", "directory of PostgreSQL's programs (default: the newest installed, else fetched)")
	flags.StringVar(&c.Search.Mirror, "postgres-mirror", "", "base URL of the Maven repository to fetch PostgreSQL from")
}

// registerServe declares all settings.
func (c *config) registerServe(flags *pflag.FlagSet) {
	c.serves = true
	c.registerCommon(flags)
	c.registerPostgres(flags)
	flags.StringVar(&c.Listen, "listen", defaultListen, "address of the API and console")
	flags.StringVar(&c.ObjectsListen, "objects-listen", "", "address of its own for downloads of objects, so that what people uploaded has another origin than the console")
	flags.StringVar(&c.ObjectsURL, "objects-url", "", "base URL by which clients reach the downloads (default: the address they are served on)")
	flags.StringVar(&c.S3Listen, "s3-listen", "", "address of the S3 endpoint, such as 127.0.0.1:9000 (default: none)")
	flags.StringVar(&c.S3URL, "s3-url", "", "base URL by which clients reach the S3 endpoint; without --s3-listen, --listen serves it for the host in it (default: the address it is served on)")
	flags.StringVar(&c.S3WebsiteURL, "s3-website-url", "", "base URL below whose host name the S3 endpoint serves buckets as websites: https://web.example.com for https://BUCKET.web.example.com (default: none)")
	flags.StringVar(&c.PublicURL, "public-url", "", "base URL by which clients reach the API and the console, where a proxy stands in front")
	flags.BoolVar(&c.InsecureHTTP, "insecure-http", false, "allow plain HTTP beyond this machine, where a TLS proxy stands in front")
	flags.StringSliceVar(&c.TrustedProxies, "trusted-proxies", nil, "addresses and networks of the proxies in front, whose --forwarded-header names the client (default: none)")
	flags.StringVar(&c.ForwardedHeader, "forwarded-header", forwardedFor, "header in which the trusted proxies name the client: X-Forwarded-For or Forwarded")
	flags.BoolVar(&c.TLS, "tls", false, "serve HTTPS with a certificate from the appliance's own authority")
	flags.StringVar(&c.TLSCert, "tls-cert", "", "serve HTTPS with this certificate (PEM file)")
	flags.StringVar(&c.TLSKey, "tls-key", "", "the key of --tls-cert (PEM file)")
	durationVar(flags, &c.HSTSMaxAge, "hsts-max-age", 365*24*time.Hour, "how long browsers use HTTPS alone for the name in --public-url, with --tls-cert or a TLS proxy, never with --tls; 0 revokes that")
	flags.StringVar(&c.PublicHost, "public-host", "", "name or address clients reach this machine by (default: the address listened on)")
	flags.StringVar(&c.PostgresPorts, "postgres-ports", defaultPorts, "ports for databases, LO-HI")
	flags.StringSliceVar(&c.Config.Listen, "postgres-listen", []string{"127.0.0.1"}, "addresses databases listen on")
	flags.StringSliceVar(&c.DefaultAllowlist, "default-allowlist", model.FormatNetworks(loopback()), "addresses and networks that a new database lets in; empty for nobody")
	flags.StringSliceVar(&c.Budgets, "budgets", defaultBudgets(), "how many requests each key may make in which time; what is left out has its default")
	flags.StringVar(&c.LogFormat, "log-format", "text", "format of the log: text or json")
	flags.StringVar(&c.LogLevel, "log-level", "info", "lowest level logged: debug, info, warn or error")
	flags.BoolVar(&c.NoFirstKey, "no-first-key", false, "do not make an API key at the first start")
	flags.IntVar(&c.Warm, "warm", core.DefaultWarm(), "running servers kept ready for new databases, 25 MB of memory each; 0 prepares nothing (default: 1, and one more for each 8 GiB of memory, at most 4)")
	flags.Lookup("warm").DefValue = "0" // so that the manual does not print this machine's
	flags.Int64Var(&c.MaxObjectBytes, "max-object-size", 50<<30, "size of the largest object, in bytes")
	durationVar(flags, &c.TrashRetention, "trash-retention", 7*24*time.Hour, "how long a deleted database can be brought back; 0 deletes at once")
	durationVar(flags, &c.ObjectTrashRetention, "object-trash-retention", 0, "how long deleted and overwritten objects, and deleted buckets, can be brought back; 0 removes at once")
	durationVar(flags, &c.ReplacedRetention, "replaced-retention", 72*time.Hour, "how long the data that a restore replaced is kept")
	durationVar(flags, &c.BackupInterval, "backup-interval", 24*time.Hour, "time between scheduled backups of a database; 0 makes none")
	durationVar(flags, &c.BackupRetention, "backup-retention", 7*24*time.Hour, "how long backups are kept; 0 keeps them for ever")
	flags.BoolVar(&c.NoExports, "no-exports", false, "make no logical export (pg_dump) after each backup")
	flags.BoolVar(&c.NoVerification, "no-verification", false, "do not restore each backup once, beside the database, to verify it")
	flags.Uint64Var(&c.AuditKeep, "audit-keep", 1_000_000, "audit entries kept for each organization; 0 is no bound")
	flags.Uint64Var(&c.AuditKeepBytes, "audit-keep-bytes", 0, "size of the audit entries kept for each organization; 0 is no bound")
	durationVar(flags, &c.AuditRetention, "audit-retention", 0, "how long audit entries are kept; 0 is no bound")
	flags.StringVar(&c.MetricsListen, "metrics-listen", "", "address of /metrics for Prometheus, such as 127.0.0.1:9432; it has no keys, so open it to nobody else (default: none)")
	c.registerOffsite(flags)
	flags.StringVar(&c.Webhooks.OperatorURL, "webhook-url", "", "URL that receives signed messages about failed backups and databases and a nearly full disk (default: none)")
	flags.StringVar(&c.Webhooks.SecretFile, "webhook-secret-file", "", "file with the key that the messages to --webhook-url are signed with (default: webhook.secret in the data directory, made when absent)")
	flags.BoolVar(&c.Webhooks.AllowPrivate, "webhook-allow-private", false, "let the webhooks of organizations reach private networks and this machine, also with http")
}

// load sets what no flag has set from the environment and the config file, and
// validates the result.
func (c *config) load(flags *pflag.FlagSet) error {
	if err := c.read(flags); err != nil {
		return err
	}
	return c.check()
}

// read sets the flags that were not given, from the environment and the config file.
func (c *config) read(flags *pflag.FlagSet) error {
	if err := fromEnvironment(flags); err != nil {
		return usageError{err}
	}
	if err := c.fromFile(flags); err != nil {
		return usageError{err}
	}
	return nil
}

// check is validate with errors of use.
func (c *config) check() error {
	if err := c.validate(); err != nil {
		return usageError{err}
	}
	return nil
}

// fromEnvironment treats an empty variable as unset, as in the shell's "$UNSET"
// and a unit's FOO=.
func fromEnvironment(flags *pflag.FlagSet) error {
	var errs []error
	flags.VisitAll(func(f *pflag.Flag) {
		name := "HOLDFAST_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		if value := os.Getenv(name); value != "" && !f.Changed {
			if err := setFlag(flags, f, value); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", name, err))
			}
		}
	})
	return errors.Join(errs...)
}

func (c *config) fromFile(flags *pflag.FlagSet) (err error) {
	path := c.ConfigFile
	if path == "" {
		return nil
	}
	values := map[string]any{}
	if _, err := toml.DecodeFile(path, &values); err != nil {
		return fmt.Errorf("config file %s: %w", path, err)
	}
	if c.Plans, err = readPlans(values["plans"]); err != nil {
		return fmt.Errorf("config file %s: %w", path, err)
	}
	delete(values, "plans")
	for key, value := range values {
		f := flags.Lookup(strings.ReplaceAll(key, "_", "-"))
		if f == nil && isSetting(key) {
			continue // a setting of serve, in a file that other commands read too
		}
		if f == nil || !isSetting(key) {
			return fmt.Errorf("config file %s: %s: no such setting; `holdfast serve --help` lists them", path, key)
		}
		if f.Changed {
			continue
		}
		if err := setFlag(flags, f, settingText(value)); err != nil {
			return fmt.Errorf("config file %s: %s: %w", path, key, err)
		}
	}
	return nil
}

// isSetting reports whether key is allowed in the config file.
func isSetting(key string) bool {
	var all config
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	all.registerServe(flags)
	return key != "config" && flags.Lookup(strings.ReplaceAll(key, "_", "-")) != nil
}

// settingText formats a TOML value as a flag's value.
func settingText(value any) string {
	list, ok := value.([]any)
	if !ok {
		return fmt.Sprint(value)
	}
	texts := make([]string, len(list))
	for i, v := range list {
		texts[i] = fmt.Sprint(v)
	}
	return strings.Join(texts, ",")
}

func (c *config) validate() (err error) {
	if c.DataDir == "" {
		return errors.New("data-dir: must name a directory")
	}
	if c.DataDir, err = filepath.Abs(c.DataDir); err != nil {
		return fmt.Errorf("data-dir: %w", err)
	}
	if c.Search.Explicit != "" && !filepath.IsAbs(c.Search.Explicit) {
		return errors.New("postgres-bin: must be an absolute path")
	}
	if !c.serves {
		return nil
	}
	return c.validateServe()
}

func (c *config) validateServe() (err error) {
	if err := c.validateAddress("listen", c.Listen); err != nil {
		return err
	}
	if err := validateBaseURL("public-url", c.PublicURL); err != nil {
		return err
	}
	if c.proxies, err = model.ParseAllowlist("trusted-proxies", c.TrustedProxies); err != nil {
		return err
	}
	if c.ForwardedHeader != forwardedFor && c.ForwardedHeader != forwardedStandard {
		return fmt.Errorf("forwarded-header: %q is not %s or %s", c.ForwardedHeader, forwardedFor, forwardedStandard)
	}
	if err := c.validateObjects(); err != nil {
		return err
	}
	if err := c.validateS3(); err != nil {
		return err
	}
	if (c.TLSCert == "") != (c.TLSKey == "") || c.TLS && c.TLSCert != "" {
		return errors.New("tls: say either --tls, or --tls-cert together with --tls-key")
	}
	if c.FirstPort, c.LastPort, err = parsePorts(c.PostgresPorts); err != nil {
		return err
	}
	if err := c.validateListen(); err != nil {
		return err
	}
	if err := c.validateWatching(); err != nil {
		return err
	}
	if err := c.validateOffsite(); err != nil {
		return err
	}
	if c.Allowlist, err = model.ParseAllowlist("default-allowlist", c.DefaultAllowlist); err != nil {
		return err
	}
	if c.Rates, err = readBudgets(c.Budgets); err != nil {
		return err
	}
	switch {
	case c.LogFormat != "text" && c.LogFormat != "json":
		return fmt.Errorf("log-format: %q is neither text nor json", c.LogFormat)
	case c.Warm < 0 || c.Warm > 64:
		return errors.New("warm: must be from 0 to 64")
	case c.MaxObjectBytes <= 0:
		return errors.New("max-object-size: must be more than 0")
	case c.TrashRetention < 0 || c.ReplacedRetention < 0 || c.ObjectTrashRetention < 0 || c.AuditRetention < 0:
		return errors.New("trash-retention, object-trash-retention, replaced-retention and audit-retention: must not be negative")
	case c.HSTSMaxAge < 0:
		return errors.New("hsts-max-age: must not be negative; 0 has browsers forget it")
	case c.BackupInterval < 0 || c.BackupRetention < 0:
		return errors.New("backup-interval and backup-retention: must not be negative")
	case c.BackupInterval > 0 && c.BackupInterval < time.Minute:
		return errors.New("backup-interval: must be at least 1m, or 0 for no scheduled backups")
	}
	return nil
}

// validateAddress rejects an address at which secrets would cross the network
// unencrypted.
func (c *config) validateAddress(name, address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%s: %q is not host:port", name, address)
	}
	if !isLoopback(host) && !c.InsecureHTTP && !c.https() {
		return fmt.Errorf("%s: %s can be reached from other machines, and keys would cross the network in the clear; "+
			"say --tls or --tls-cert, or put a TLS proxy in front and say --insecure-http", name, address)
	}
	return nil
}

// validateBaseURL checks a base URL, which may be empty.
func validateBaseURL(name, address string) error {
	base, err := url.Parse(address)
	if address != "" && (err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || base.User != nil ||
		base.Path+base.RawQuery+base.Fragment != "") {
		return fmt.Errorf("%s: %q is not like https://holdfast.example.com, without a path", name, address)
	}
	return nil
}

func (c *config) validateObjects() error {
	if err := validateBaseURL("objects-url", c.ObjectsURL); err != nil {
		return err
	}
	if c.ObjectsListen == "" {
		return nil
	}
	return c.validateAddress("objects-listen", c.ObjectsListen)
}

// https reports whether the API is served over TLS.
func (c *config) https() bool { return c.TLS || c.TLSCert != "" }

func (c *config) validateListen() error {
	if len(c.Config.Listen) == 0 {
		return errors.New("postgres-listen: must name at least one address")
	}
	for _, address := range c.Config.Listen {
		if _, err := netip.ParseAddr(address); err != nil {
			return fmt.Errorf("postgres-listen: %q is not an IP address", address)
		}
	}
	if c.PublicHost == "" {
		c.PublicHost = c.Config.Listen[0]
		if netip.MustParseAddr(c.PublicHost).IsUnspecified() {
			c.PublicHost = "127.0.0.1"
		}
	}
	if address, err := netip.ParseAddr(c.PublicHost); err != nil && !model.IsHostName(c.PublicHost) || address.Zone() != "" {
		return fmt.Errorf("public-host: %q is neither an IP address nor a host name in ASCII, without a port", c.PublicHost)
	}
	return nil
}

// parsePorts parses LO-HI. Ports below 1024 are privileged.
func parsePorts(text string) (first, last int, err error) {
	lo, hi, found := strings.Cut(text, "-")
	first, err1 := strconv.Atoi(lo)
	last, err2 := strconv.Atoi(hi)
	if !found || err1 != nil || err2 != nil || first < 1024 || last > 65535 || first > last {
		return 0, 0, fmt.Errorf("postgres-ports: %q is not LO-HI with ports from 1024 to 65535", text)
	}
	return first, last, nil
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}

// defaultDataDir returns rootDataDir for root, else a directory in the user's
// XDG data directory.
func defaultDataDir() string {
	if os.Geteuid() == 0 {
		return rootDataDir
	}
	if dir := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "holdfast")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "holdfast-data"
	}
	return filepath.Join(home, ".local", "share", "holdfast")
}

// mustExist returns an error if dir does not contain an appliance.
func mustExist(dir string) error {
	_, err := os.Stat(filepath.Join(dir, "holdfast.db"))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no appliance in %s; `holdfast serve` makes one, --data-dir names another place", dir)
	}
	return err
}
