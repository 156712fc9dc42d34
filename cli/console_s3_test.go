package cli_test

import (
	"fmt"
	"strings"
	"testing"

	"holdfast/internal/s3tools"
	"holdfast/server/api/wire"
)

// TestConsoleS3 compares the configuration for tools that the page of a new key shows with what the API says of the key.
func TestConsoleS3(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.start("--s3-listen", "127.0.0.1:0")
	b := m.browse(t)
	b.setUp(m)
	b.open("/keys/new")
	b.fill("#name", "for tools")
	b.press("Make the key")
	b.see("For S3")
	var c wire.StorageCredentials
	back := m.as(b.copied(0))
	m.must("GET", "/account/storage-credentials", nil, &c)
	back()
	if c.Endpoint == nil {
		t.Fatal("there is no endpoint")
	}
	access := s3tools.Access{ID: c.AccessKeyID, Secret: c.SecretAccessKey, URL: *c.Endpoint, Region: c.Region}
	for i, tool := range s3tools.Tools() {
		b.press("Configure " + tool.Name)
		shown := b.value(fmt.Sprintf(`document.querySelectorAll('details pre')[%d].innerText`, i))
		if strings.TrimSpace(shown) != strings.TrimSpace(tool.Write(access)) {
			t.Errorf("%s:\n%s", tool.Name, shown)
		}
	}
	b.shot("key-created-tools")
	b.open("/keys/new")
	b.fill("#name", "for something else")
	b.click(`input[value="custom"]`)
	b.click(`input[value="account:read"]`)
	b.press("Make the key")
	b.see("This key is of no use for S3")
}
