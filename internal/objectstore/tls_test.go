package objectstore_test

import (
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast/internal/objectstore"
	. "holdfast/internal/objectstore/objectstoretest"
)

// TestTLS: an endpoint whose certificate is not the system's is trusted by
// AWS_CA_BUNDLE alone, and what is wrong is told at once.
func TestTLS(t *testing.T) {
	withFaults(t, func(t *testing.T, r *rig) {
		secure := httptest.NewTLSServer(r.proxy)
		defer secure.Close()
		bundle := filepath.Join(t.TempDir(), "ca.pem")
		if err := os.WriteFile(bundle, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}), 0o600); err != nil {
			t.Fatal(err)
		}
		trusting := r.Environment(secure.URL).With("AWS_CA_BUNDLE", bundle)
		for what, c := range map[string]struct {
			env    Environment
			remedy string
		}{
			"trusted":          {trusting, ""},
			"not trusted":      {r.Environment(secure.URL), "AWS_CA_BUNDLE"},
			"TLS to plain":     {r.Environment(strings.Replace(r.URL, "http:", "https:", 1)), "http://"},
			"another's name":   {trusting.With("AWS_ENDPOINT_URL", strings.Replace(secure.URL, "127.0.0.1", "localhost", 1)), "AWS_ENDPOINT_URL"},
			"nobody listening": {r.Environment("http://127.0.0.1:1"), "AWS_ENDPOINT_URL"},
		} {
			s := open(t, "s3://"+r.bucket, objectstore.Options{Getenv: c.env.Getenv, Patience: 400 * time.Millisecond})
			defer s.Close()
			err := s.Create(t.Context(), "tls", objectstore.Bytes("x"), objectstore.CreateOptions{})
			if c.remedy == "" && err != nil {
				t.Errorf("%s: %v", what, err)
			}
			if c.remedy != "" && (!errors.Is(err, objectstore.ErrUnavailable) || !strings.Contains(err.Error(), c.remedy)) {
				t.Errorf("%s: %v, want %v and the remedy %q", what, err, objectstore.ErrUnavailable, c.remedy)
			}
		}
	})
}

// TestInstanceMetadata: the service of a machine or container is asked where it may be.
func TestInstanceMetadata(t *testing.T) {
	server := Servers(t)[0]
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"AccessKeyId":"` + server.AccessKey + `","SecretAccessKey":"` + server.SecretKey + `","Expiration":"2099-01-01T00:00:00Z"}`))
	}))
	defer service.Close()
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", service.URL)
	env := server.Environment("").With("AWS_ACCESS_KEY_ID", "")
	bucket := server.Bucket(t, false)
	for asked, want := range map[bool]error{true: nil, false: objectstore.ErrDenied} {
		s := open(t, "s3://"+bucket, objectstore.Options{Getenv: env.Getenv, InstanceMetadata: asked})
		defer s.Close()
		if err := s.Create(t.Context(), "a", objectstore.Bytes("x"), objectstore.CreateOptions{}); !errors.Is(err, want) {
			t.Errorf("asked %v: %v, want %v", asked, err, want)
		}
	}
}
