package objectstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const secretOfTests = "wJalrXUtnFEMI-secret"

// awsHome returns an environment whose shared files have these contents.
func awsHome(t *testing.T, config, credentials string, variables ...string) func(string) string {
	t.Helper()
	home := t.TempDir()
	dir := filepath.Join(home, ".aws")
	if err := errors.Join(os.Mkdir(dir, 0o700),
		os.WriteFile(filepath.Join(dir, "config"), []byte(config), 0o600),
		os.WriteFile(filepath.Join(dir, "credentials"), []byte(credentials), 0o600)); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"HOME": home}
	for i := 0; i+1 < len(variables); i += 2 {
		env[variables[i]] = variables[i+1]
	}
	return func(name string) string { return env[name] }
}

const (
	configOfTests = `
[default]
region = eu-central-1

[profile garage]
region=garage
endpoint_url = http://127.0.0.1:3900
services = local

[services local]
s3 =
  endpoint_url = http://127.0.0.1:3901
  addressing_style = path

[profile process]
credential_process = echo '{"Version": 1, "AccessKeyId": "fromprocess", "SecretAccessKey": "s3cr3t", "SessionToken": "tok", "Expiration": "2099-01-01T00:00:00Z"}'

[profile broken]
credential_process = exit 3

[profile sso]
sso_session = corp

[profile inconfig]
aws_access_key_id = idinconfig
aws_secret_access_key = s
`
	credentialsOfTests = `
[default]
aws_access_key_id = default-id
aws_secret_access_key = ` + secretOfTests + `

[garage]
aws_access_key_id = garage-id
aws_secret_access_key = g
aws_session_token = t
`
)

func TestAWSSettings(t *testing.T) {
	for what, c := range map[string]struct {
		variables []string
		want      awsSettings
	}{
		"default profile": {nil, awsSettings{region: "eu-central-1"}},
		"named profile":   {[]string{"AWS_PROFILE", "garage"}, awsSettings{region: "garage", endpoint: "http://127.0.0.1:3901"}},
		"variables win": {
			[]string{"AWS_PROFILE", "garage", "AWS_REGION", "r", "AWS_ENDPOINT_URL", "http://e", "AWS_CA_BUNDLE", "/ca"},
			awsSettings{region: "r", endpoint: "http://e", caBundle: "/ca"},
		},
		"endpoint of S3 wins": {[]string{"AWS_ENDPOINT_URL", "http://e", "AWS_ENDPOINT_URL_S3", "http://s3"}, awsSettings{region: "eu-central-1", endpoint: "http://s3"}},
		"default region":      {[]string{"AWS_DEFAULT_REGION", "d"}, awsSettings{region: "d"}},
	} {
		got, err := loadAWS(awsHome(t, configOfTests, credentialsOfTests, c.variables...))
		if err != nil || got != c.want {
			t.Errorf("%s: %+v, %v, want %+v", what, got, err, c.want)
		}
	}
	if got, err := loadAWS(func(string) string { return "" }); err != nil || got.region != "us-east-1" {
		t.Errorf("without anything: %+v, %v", got, err)
	}
	if _, err := loadAWS(awsHome(t, configOfTests, credentialsOfTests, "AWS_PROFILE", "nobody")); err == nil || !strings.Contains(err.Error(), "nobody") {
		t.Errorf("a profile that is nowhere: %v", err)
	}
}

func TestAWSCredentials(t *testing.T) {
	for what, c := range map[string]struct {
		variables         []string
		id, secret, token string
	}{
		"variables":      {[]string{"AWS_ACCESS_KEY_ID", "a", "AWS_SECRET_ACCESS_KEY", "b", "AWS_SESSION_TOKEN", "c"}, "a", "b", "c"},
		"half of them":   {[]string{"AWS_ACCESS_KEY_ID", "a"}, "default-id", secretOfTests, ""},
		"default":        {nil, "default-id", secretOfTests, ""},
		"profile":        {[]string{"AWS_PROFILE", "garage"}, "garage-id", "g", "t"},
		"in config":      {[]string{"AWS_PROFILE", "inconfig"}, "idinconfig", "s", ""},
		"from a process": {[]string{"AWS_PROFILE", "process"}, "fromprocess", "s3cr3t", "tok"},
		"none: broken":   {[]string{"AWS_PROFILE", "broken"}, "", "", ""},
		"none: sso":      {[]string{"AWS_PROFILE", "sso"}, "", "", ""},
	} {
		p := &provider{getenv: awsHome(t, configOfTests, credentialsOfTests, c.variables...)}
		v, err := p.Retrieve()
		if v.AccessKeyID != c.id || v.SecretAccessKey != c.secret || v.SessionToken != c.token {
			t.Errorf("%s: %s, %v", what, v.AccessKeyID, err)
		}
		if c.id == "" && !errors.Is(err, errNoCredentials) {
			t.Errorf("%s: %v, want %v", what, err, errNoCredentials)
		}
	}
}

func TestMalformedFilesDoNotShow(t *testing.T) {
	getenv := awsHome(t, configOfTests, "[default\naws_secret_access_key = "+secretOfTests+"\n")
	_, err := loadAWS(getenv)
	if err == nil || strings.Contains(err.Error(), secretOfTests) {
		t.Errorf("a malformed file: %v", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	getenv := func(string) string { return "" }
	for _, location := range []string{
		"", "bucket", "http://host/bucket", "s3://", "s3:///prefix", "s3://bucket:80/p", "s3://bucket/a//b", "s3://bucket/../x", "s3://bucket/a?x=1", "s3://bucket/ü",
		"s3://id:" + secretOfTests + "@bucket/p", "s3://id:" + secretOfTests + "%zz@bucket/p", "file://relative/path", "file:relative", "file:///no/such/directory", "file:///etc/passwd",
		"s3://B_/p",
	} {
		_, err := Open(t.Context(), location, Options{Getenv: getenv})
		if location == "s3://B_/p" {
			continue // a bucket's name is the library's business
		}
		if err == nil || strings.Contains(err.Error(), secretOfTests) {
			t.Errorf("Open(%q): %v", location, err)
		}
	}
	if _, err := Open(t.Context(), "file:///no/such/directory", Options{}); !errors.Is(err, ErrNoStore) {
		t.Errorf("a directory that is missing: %v, want %v", err, ErrNoStore)
	}
	for _, endpoint := range []string{"host:9000", "http://host/path", "ftp://host", "http://user:" + secretOfTests + "@host", "http://host?x=" + secretOfTests} {
		_, err := Open(t.Context(), "s3://bucket", Options{Getenv: func(name string) string { return map[string]string{"AWS_ENDPOINT_URL": endpoint}[name] }})
		if err == nil || strings.Contains(err.Error(), secretOfTests) {
			t.Errorf("with the endpoint %q: %v", endpoint, err)
		}
	}
	bundle := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(bundle, []byte("not a certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{bundle, bundle + ".missing"} {
		_, err := Open(t.Context(), "s3://bucket", Options{Getenv: func(name string) string { return map[string]string{"AWS_CA_BUNDLE": path}[name] }})
		if err == nil || !strings.Contains(err.Error(), "AWS_CA_BUNDLE") {
			t.Errorf("with the CA bundle %s: %v", path, err)
		}
	}
}

func TestEndpoints(t *testing.T) {
	for _, c := range []struct{ region, endpoint, want string }{
		{"eu-west-1", "", "https://s3.eu-west-1.amazonaws.com"},
		{"cn-north-1", "", "https://s3.cn-north-1.amazonaws.com.cn"},
		{"garage", "http://localhost:3900/", "http://localhost:3900/"},
	} {
		u, lookup, err := awsSettings{region: c.region, endpoint: c.endpoint}.s3()
		if err != nil || u.String() != c.want {
			t.Errorf("%+v: %s, %v", c, u, err)
		}
		if path := fmt.Sprint(lookup) == "2"; path != (c.endpoint != "") {
			t.Errorf("%+v: path style %v", c, path)
		}
	}
}

// TestNoCredentials: without any, no metadata service is asked, and the text says
// what to set.
func TestNoCredentials(t *testing.T) {
	s, err := Open(t.Context(), "s3://bucket/p", Options{Patience: time.Second, Getenv: func(name string) string {
		return map[string]string{"AWS_ENDPOINT_URL": "http://127.0.0.1:1", "AWS_EC2_METADATA_SERVICE_ENDPOINT": "http://127.0.0.1:1"}[name]
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	began := time.Now()
	err = s.Create(t.Context(), "a", Bytes("x"), CreateOptions{})
	if !errors.Is(err, ErrDenied) || !strings.Contains(err.Error(), "AWS_ACCESS_KEY_ID") || time.Since(began) > 500*time.Millisecond {
		t.Errorf("after %s: %v", time.Since(began), err)
	}
}
