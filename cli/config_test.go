package cli

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"holdfast/engine/core"
	"holdfast/engine/model"
)

// loadConfig reads the settings as serve does.
func loadConfig(t *testing.T, args ...string) (config, error) {
	t.Helper()
	var c config
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	c.registerServe(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return c, c.load(flags)
}

func configFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "holdfast.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestConfigPrecedence(t *testing.T) {
	file := configFile(t, `
listen = "127.0.0.1:1"
warm = 7
postgres_listen = ["127.0.0.1", "::1"]
trash_retention = "2h"
log_format = "json"
no_first_key = true
`)
	t.Setenv("HOLDFAST_CONFIG", file)
	t.Setenv("HOLDFAST_LISTEN", "127.0.0.1:2")
	t.Setenv("HOLDFAST_WARM", "8")
	c, err := loadConfig(t, "--warm", "9")
	if err != nil {
		t.Fatal(err)
	}
	if c.Warm != 9 || c.Listen != "127.0.0.1:2" || c.LogFormat != "json" || !c.NoFirstKey {
		t.Errorf("flag, variable and file gave %d, %s, %s, %t", c.Warm, c.Listen, c.LogFormat, c.NoFirstKey)
	}
	if c.TrashRetention != 2*time.Hour || strings.Join(c.Config.Listen, " ") != "127.0.0.1 ::1" {
		t.Errorf("the file gave %s and %v", c.TrashRetention, c.Config.Listen)
	}
}

// TestConfigEmptyVariables checks that an empty variable counts as unset.
func TestConfigEmptyVariables(t *testing.T) {
	for _, name := range []string{"DATA_DIR", "LISTEN", "WARM", "TLS"} {
		t.Setenv("HOLDFAST_"+name, "")
	}
	c, err := loadConfig(t, "--config", configFile(t, "warm = 7\n"))
	if err != nil {
		t.Fatal(err)
	}
	if c.DataDir != defaultDataDir() || c.Listen != defaultListen || c.Warm != 7 {
		t.Errorf("data directory %s, address %s, %d warm servers", c.DataDir, c.Listen, c.Warm)
	}
}

func TestConfigRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		file string
		says string
	}{
		"unknown key":        {file: `lsiten = "x"`, says: "lsiten"},
		"config in config":   {file: `config = "x"`, says: "config"},
		"wrong type":         {file: `warm = "many"`, says: "warm"},
		"no TOML":            {file: `warm = `, says: "config file"},
		"no such file":       {args: []string{"--config", "/nowhere.toml"}, says: "/nowhere.toml"},
		"listen":             {args: []string{"--listen", "8432"}, says: "host:port"},
		"open in clear":      {args: []string{"--listen", "0.0.0.0:8432"}, says: "--insecure-http"},
		"no address":         {args: []string{"--listen", ""}, says: "host:port"},
		"no data dir":        {args: []string{"--data-dir", ""}, says: "data-dir"},
		"no dir in file":     {file: `data_dir = ""`, says: "data-dir"},
		"ports":              {args: []string{"--postgres-ports", "9000-8000"}, says: "LO-HI"},
		"system ports":       {args: []string{"--postgres-ports", "1-8000"}, says: "LO-HI"},
		"public URL as host": {args: []string{"--public-host", "https://db.example.com"}, says: "public-host"},
		"public host, port":  {args: []string{"--public-host", "db.example.com:5432"}, says: "neither an IP address nor a host name"},
		"public host, zone":  {args: []string{"--public-host", "fe80::1%eth0"}, says: "public-host"},
		"public host, IDN":   {args: []string{"--public-host", "bücher.example"}, says: "in ASCII"},
		"postgres listen":    {args: []string{"--postgres-listen", "localhost"}, says: "not an IP address"},
		"relative bin":       {args: []string{"--postgres-bin", "bin"}, says: "absolute"},
		"warm":               {args: []string{"--warm", "-1"}, says: "warm"},
		"retention":          {args: []string{"--trash-retention", "-1h"}, says: "trash-retention"},
		"half of TLS":        {args: []string{"--tls-cert", "x"}, says: "--tls-key"},
		"limit":              {file: "[plans.tiny]\nbuckts = 3", says: "plans.tiny.buckts"},
		"negative limit":     {file: "[plans.tiny]\nbuckets = -3", says: "plans.tiny.buckets"},
		"limit in words":     {file: "[plans.tiny]\nbuckets = \"3\"", says: "whole number"},
		"plans no tables":    {file: "plans = 3", says: "[plans.starter]"},
		"plan no table":      {file: "[plans]\ntiny = 3", says: "plans.tiny"},
		"reserved plan":      {file: "[plans.self_hosted]\nbuckets = 3", says: "another name"},
		"metrics":            {args: []string{"--metrics-listen", "9432"}, says: "metrics-listen"},
		"webhook":            {args: []string{"--webhook-url", "ftp://secret@x"}, says: "webhook-url"},
		"audit retention":    {args: []string{"--audit-retention", "-1h"}, says: "audit-retention"},
		"allow-list":         {args: []string{"--default-allowlist", "10.0.0.1/8"}, says: "default-allowlist: \"10.0.0.1/8\" has bits set"},
		"allow-list name":    {file: `default_allowlist = ["localhost"]`, says: "default-allowlist: \"localhost\" is neither"},
		"budget of what":     {args: []string{"--budgets", "uploads=30/1m"}, says: "create_database"},
		"budget of none":     {args: []string{"--budgets", "restore=0/1m"}, says: `budgets: restore: "0/1m" is not like`},
		"budget no window":   {file: `budgets = ["restore=3"]`, says: `budgets: restore: "3" is not like`},
		"budget window":      {args: []string{"--budgets", "restore=3/25h"}, says: "1s to 24h"},
		"budget forever":     {args: []string{"--budgets", "restore=3/-1m"}, says: "1s to 24h"},
		"budget, too much":   {args: []string{"--budgets", "restore=10001/1m"}, says: "10000"},
		"TLS twice":          {args: []string{"--tls", "--tls-cert", "x", "--tls-key", "y"}, says: "either"},
		"local size":         {args: []string{"--objects-local-size", "30G"}, says: "share of the disk"},
		"local share":        {args: []string{"--objects-local-size", "300%"}, says: "share of the disk"},
		"local without copy": {args: []string{"--objects-local-size", "30%"}, says: "--offsite names"},
		"after without size": {args: []string{"--objects-offsite-after", "1h"}, says: "--objects-local-size"},
		"short lock":         {args: []string{"--offsite", "s3://b/p", "--offsite-passphrase-file", "x", "--offsite-retention", "23h"}, says: "at least 24h"},
		"short lock alone":   {args: []string{"--offsite-retention", "1h"}, says: "at least 24h"},
		"days":               {file: `trash_retention = "a week"`, says: `trash_retention: "a week" is not a duration such as 12h or 7d`},
		"number":             {file: `max_object_size = "50 GiB"`, says: `max_object_size: "50 GiB" is not a whole number`},
		"negative above":     {args: []string{"--objects-offsite-above", "-1"}, says: "must not be negative"},
	} {
		t.Run(name, func(t *testing.T) {
			args := c.args
			if c.file != "" {
				args = append(args, "--config", configFile(t, c.file))
			}
			if _, err := loadConfig(t, args...); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("it said: %v", err)
			}
		})
	}
}

// TestConfigOfAccess checks the settings of budgets and the default allow-list;
// budgets that are not named keep their defaults.
func TestConfigOfAccess(t *testing.T) {
	file := configFile(t, `
default_allowlist = ["10.0.0.0/8", "192.0.2.1"]
budgets = ["restore=3/10s", "import=1/24h"]
`)
	c, err := loadConfig(t, "--config", file)
	if err != nil {
		t.Fatal(err)
	}
	want := core.DefaultRates()
	want[model.RateRestore], want[model.RateImport] = core.Rate{Limit: 3, Window: 10 * time.Second}, core.Rate{Limit: 1, Window: 24 * time.Hour}
	cfg := c.engine()
	if fmt.Sprint(cfg.Allowlist) != "[10.0.0.0/8 192.0.2.1/32]" || !maps.Equal(cfg.Rates, want) {
		t.Errorf("%v, %v", cfg.Allowlist, cfg.Rates)
	}
	if c, err = loadConfig(t, "--default-allowlist="); err != nil || len(c.engine().Allowlist) != 0 {
		t.Errorf("nobody: %v, %v", c.engine().Allowlist, err)
	}
	if c, err = loadConfig(t); err != nil || !slices.Equal(c.engine().Allowlist, loopback()) || !maps.Equal(c.engine().Rates, core.DefaultRates()) {
		t.Errorf("by default %v, %v, %v", c.engine().Allowlist, c.engine().Rates, err)
	}
}

// TestConfigDays: durations may be in days, as those of other commands.
func TestConfigDays(t *testing.T) {
	c, err := loadConfig(t, "--trash-retention", "7d", "--offsite-retention=30d", "--backup-interval", "1h30m", "--audit-retention", "0")
	if err != nil || c.TrashRetention != 168*time.Hour || c.Offsite.Retention != 720*time.Hour || c.BackupInterval != 90*time.Minute || c.AuditRetention != 0 {
		t.Errorf("%s, %s, %s, %s, %v", c.TrashRetention, c.Offsite.Retention, c.BackupInterval, c.AuditRetention, err)
	}
}

// TestConfigOfVariables: what cannot be read in a variable is said with its name and what is wanted.
func TestConfigOfVariables(t *testing.T) {
	for name, wanted := range map[string]string{
		"HOLDFAST_WARM": "a whole number", "HOLDFAST_NO_EXPORTS": "true or false", "HOLDFAST_TRASH_RETENTION": "a duration such as 12h or 7d",
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, "abc")
			if _, err := loadConfig(t); err == nil || err.Error() != name+`: "abc" is not `+wanted {
				t.Errorf("it said: %v", err)
			}
		})
	}
}

// TestFlagErrors: so is what cannot be read on the command line.
func TestFlagErrors(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"serve --warm abc":               "--warm: \"abc\" is not a whole number; see `holdfast serve --help`",
		"serve --trash-retention week":   "--trash-retention: \"week\" is not a duration such as 12h or 7d; see",
		"db create x --sleep-after week": "--sleep-after: \"week\" is not a duration such as 12h; see",
	} {
		root := NewRoot()
		root.SetArgs(strings.Fields(args))
		if err := root.ExecuteContext(t.Context()); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", args, err)
		}
	}
}

func TestConfigOpensUpWithTLS(t *testing.T) {
	for _, args := range [][]string{
		{"--listen", "0.0.0.0:8432", "--tls"},
		{"--listen", "[::]:8432", "--insecure-http"},
		{"--listen", "localhost:8432"},
		{"--listen", "[::1]:8432"},
	} {
		if _, err := loadConfig(t, args...); err != nil {
			t.Errorf("%v: %v", args, err)
		}
	}
}

// TestConfigOfAnotherCommand checks that operator commands read the same file
// and skip the settings of serve.
func TestConfigOfAnotherCommand(t *testing.T) {
	var c config
	flags := pflag.NewFlagSet("admin", pflag.ContinueOnError)
	c.registerCommon(flags)
	file := configFile(t, "listen = \"127.0.0.1:1\"\ndata_dir = \"/srv/holdfast\"\n[plans.tiny]\nbuckets = 3\n")
	if err := flags.Parse([]string{"--config", file}); err != nil {
		t.Fatal(err)
	}
	if err := c.load(flags); err != nil || c.DataDir != "/srv/holdfast" || c.Plans["tiny"].Limits[model.MetricBuckets] != 3 {
		t.Errorf("data directory %s, plans %v, %v", c.DataDir, c.Plans, err)
	}
}

func TestParseLife(t *testing.T) {
	for text, want := range map[string]time.Duration{"": 0, "12h": 12 * time.Hour, "90d": 90 * 24 * time.Hour} {
		if got, err := parseLife("--expires", text); err != nil || got != want {
			t.Errorf("%q: %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"soon", "-1h", "0d", "d", "1.5d"} {
		if _, err := parseLife("--expires", text); err == nil {
			t.Errorf("%q is taken for a duration", text)
		}
	}
}

func TestObjectsConfig(t *testing.T) {
	for name, args := range map[string][]string{
		"no port":             {"--objects-listen", "127.0.0.1"},
		"beyond this machine": {"--objects-listen", "0.0.0.0:8433"},
		"no scheme":           {"--objects-url", "files.example.com"},
		"a path":              {"--objects-url", "https://files.example.com/x"},
		"a query":             {"--public-url", "https://example.com?x"},
		"a password":          {"--public-url", "https://a:b@example.com"},
		"not HTTP":            {"--public-url", "ftp://example.com"},
		"negative":            {"--object-trash-retention", "-1h"},
		"a proxy's name":      {"--trusted-proxies", "proxy.example.com"},
		"a proxy's header":    {"--forwarded-header", "X-Real-IP"},
	} {
		if _, err := loadConfig(t, args...); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	if _, err := loadConfig(t, "--objects-listen", "127.0.0.1:0", "--objects-url", "https://files.example.com", "--object-trash-retention", "24h"); err != nil {
		t.Error(err)
	}
}

func TestWebsiteConfig(t *testing.T) {
	t.Parallel()
	s3 := []string{"--s3-listen", "127.0.0.1:0", "--s3-url", "https://s3.example.com"}
	for name, args := range map[string][]string{
		"no scheme":               {"--s3-website-url", "web.example.com"},
		"an address":              {"--s3-website-url", "http://127.0.0.1:9000"},
		"the endpoint's own host": {"--s3-website-url", "https://s3.example.com"},
		"below the endpoint":      {"--s3-website-url", "https://web.s3.example.com"},
		"above the endpoint":      {"--s3-website-url", "https://example.com"},
		"above the console":       {"--s3-website-url", "https://example.net", "--public-url", "https://db.example.net"},
		"above the objects' host": {"--s3-website-url", "https://example.net", "--objects-url", "https://files.example.net"},
	} {
		if _, err := loadConfig(t, slices.Concat(s3, args)...); err == nil || !strings.Contains(err.Error(), "s3-website-url: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := loadConfig(t, "--s3-website-url", "https://web.example.com"); err == nil || !strings.Contains(err.Error(), "--s3-listen") {
		t.Errorf("without the endpoint: %v", err)
	}
	for _, url := range []string{"https://web.example.com", "http://localhost:9000"} {
		if _, err := loadConfig(t, slices.Concat(s3, []string{"--s3-website-url", url})...); err != nil {
			t.Error(err)
		}
	}
}
