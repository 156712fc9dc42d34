package objectstore

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"
	"gopkg.in/ini.v1"
)

var errNoCredentials = errors.New("no credentials were found")

// awsSettings are what the environment and the shared files say, secrets aside.
type awsSettings struct {
	region   string
	endpoint string // empty for Amazon's
	caBundle string
}

// loadAWS reads the settings in the order of the AWS SDKs: the environment, then the
// profile of the config file.
func loadAWS(getenv func(string) string) (awsSettings, error) {
	p, err := loadProfile(getenv)
	if err != nil {
		return awsSettings{}, err
	}
	return awsSettings{
		region:   cmp.Or(getenv("AWS_REGION"), getenv("AWS_DEFAULT_REGION"), p.config["region"], "us-east-1"),
		endpoint: cmp.Or(getenv("AWS_ENDPOINT_URL_S3"), getenv("AWS_ENDPOINT_URL"), p.serviceEndpoint, p.config["endpoint_url"]),
		caBundle: cmp.Or(getenv("AWS_CA_BUNDLE"), p.config["ca_bundle"]),
	}, nil
}

// profile is one profile of the shared files.
type profile struct {
	name            string
	config          map[string]string
	credentials     map[string]string
	serviceEndpoint string // endpoint_url of s3 in the services section it names
}

// loadProfile reads the profile AWS_PROFILE, or "default". A file that does not
// exist is empty, but a profile that was named must be in one of them.
func loadProfile(getenv func(string) string) (profile, error) {
	p := profile{name: cmp.Or(getenv("AWS_PROFILE"), getenv("AWS_DEFAULT_PROFILE"), "default")}
	config, err := loadINI(cmp.Or(getenv("AWS_CONFIG_FILE"), filepath.Join(getenv("HOME"), ".aws", "config")))
	if err != nil {
		return p, err
	}
	secrets, err := loadINI(credentialsFile(getenv))
	if err != nil {
		return p, err
	}
	p.config = section(config, "profile "+p.name)
	if p.name == "default" && p.config == nil {
		p.config = section(config, "default")
	}
	p.credentials = section(secrets, p.name)
	if p.name != "default" && p.config == nil && p.credentials == nil {
		return p, fmt.Errorf("AWS_PROFILE names the profile %q, which neither the config nor the credentials file of the AWS tools has", p.name)
	}
	if services := p.config["services"]; services != "" {
		nested, _ := ini.Load([]byte(section(config, "services "+services)["s3"]))
		p.serviceEndpoint = section(nested, ini.DefaultSection)["endpoint_url"]
	}
	return p, nil
}

// credentialsFile returns the path of the shared credentials file.
func credentialsFile(getenv func(string) string) string {
	return cmp.Or(getenv("AWS_SHARED_CREDENTIALS_FILE"), filepath.Join(getenv("HOME"), ".aws", "credentials"))
}

// loadINI reads a file. Its errors do not show a line of it.
func loadINI(path string) (*ini.File, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return ini.Empty(), nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the AWS file: %w", err)
	}
	f, err := ini.LoadSources(ini.LoadOptions{AllowNestedValues: true, AllowPythonMultilineValues: true, SkipUnrecognizableLines: true}, text)
	if err != nil {
		return nil, fmt.Errorf("read the AWS file %s: it is malformed", path)
	}
	return f, nil
}

// section returns the values of a section, nil if there is none.
func section(f *ini.File, name string) map[string]string {
	if f == nil || !f.HasSection(name) {
		return nil
	}
	return f.Section(name).KeysHash()
}

// provider finds credentials for each new connection of settings: again after Expire,
// so that rotated ones are found without a restart.
type provider struct {
	getenv   func(string) string
	metadata bool
	inner    *credentials.IAM // of the metadata service, once it was asked
	until    time.Time        // when what was found ends, zero for never
}

// RetrieveWithCredContext implements credentials.Provider.
func (p *provider) RetrieveWithCredContext(*credentials.CredContext) (credentials.Value, error) {
	p.until = time.Time{}
	if v := p.environment(); v.AccessKeyID != "" && v.SecretAccessKey != "" {
		return v, nil
	}
	found, err := loadProfile(p.getenv)
	if err != nil {
		return credentials.Value{}, err
	}
	for _, values := range []map[string]string{found.credentials, found.config} {
		if values["aws_access_key_id"] != "" && values["aws_secret_access_key"] != "" {
			return value(values["aws_access_key_id"], values["aws_secret_access_key"], values["aws_session_token"]), nil
		}
		if command := values["credential_process"]; command != "" {
			return p.process(command)
		}
	}
	if p.metadata {
		return p.fromMetadata()
	}
	for _, unsupported := range []string{"sso_session", "sso_start_url", "role_arn"} {
		if found.config[unsupported] != "" {
			return credentials.Value{}, fmt.Errorf("%w: the profile %q uses %s; give it a credential_process, for example: aws configure export-credentials --format process", errNoCredentials, found.name, unsupported)
		}
	}
	return credentials.Value{}, fmt.Errorf("%w: neither the variables nor %s has any that this process may read", errNoCredentials, credentialsFile(p.getenv))
}

// Retrieve implements credentials.Provider.
func (p *provider) Retrieve() (credentials.Value, error) { return p.RetrieveWithCredContext(nil) }

// IsExpired implements credentials.Provider.
func (p *provider) IsExpired() bool {
	if p.inner != nil {
		return p.inner.IsExpired()
	}
	return !p.until.IsZero() && time.Now().After(p.until.Add(-time.Minute))
}

func (p *provider) environment() credentials.Value {
	return value(p.getenv("AWS_ACCESS_KEY_ID"), p.getenv("AWS_SECRET_ACCESS_KEY"), p.getenv("AWS_SESSION_TOKEN"))
}

func value(id, secret, token string) credentials.Value {
	return credentials.Value{AccessKeyID: id, SecretAccessKey: secret, SessionToken: token, SignerType: credentials.SignatureV4}
}

// process runs the command of a profile that prints credentials, as the AWS SDKs do.
func (p *provider) process(command string) (credentials.Value, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Stdout = &out
	if err := cmd.Run(); err != nil {
		return credentials.Value{}, fmt.Errorf("%w: run credential_process: %w", errNoCredentials, err)
	}
	var printed struct {
		AccessKeyID, SecretAccessKey, SessionToken string
		Expiration                                 time.Time
	}
	if err := json.Unmarshal(out.Bytes(), &printed); err != nil || printed.AccessKeyID == "" || printed.SecretAccessKey == "" {
		return credentials.Value{}, fmt.Errorf("%w: credential_process printed no credentials", errNoCredentials)
	}
	p.until = printed.Expiration
	return value(printed.AccessKeyID, printed.SecretAccessKey, printed.SessionToken), nil
}

// fromMetadata asks the metadata service.
func (p *provider) fromMetadata() (credentials.Value, error) {
	if p.inner == nil {
		p.inner = &credentials.IAM{Client: &http.Client{Timeout: 10 * time.Second}}
	}
	v, err := p.inner.RetrieveWithCredContext(&credentials.CredContext{Client: p.inner.Client})
	if err != nil {
		return v, fmt.Errorf("%w: ask the metadata service: %w", errNoCredentials, err)
	}
	return v, nil
}

// S3Settings are what the environment and the shared files of the AWS tools say of a store,
// secrets aside. Endpoint is empty for Amazon's.
type S3Settings struct{ Endpoint, Region, Profile, AccessKey string }

// ReadS3Settings returns the settings that Open would use; getenv is os.Getenv.
func ReadS3Settings(getenv func(string) string) (S3Settings, error) {
	s, err := loadAWS(getenv)
	if err != nil {
		return S3Settings{}, err
	}
	p, err := loadProfile(getenv)
	return S3Settings{
		Endpoint: s.endpoint, Region: s.region, Profile: cmp.Or(getenv("AWS_PROFILE"), getenv("AWS_DEFAULT_PROFILE")),
		AccessKey: cmp.Or(getenv("AWS_ACCESS_KEY_ID"), p.credentials["aws_access_key_id"]),
	}, err
}
