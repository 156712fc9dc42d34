package cli_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/internal/testenv"
	"holdfast/server/api/wire"
)

// TestRotation changes what opens a copy from a passphrase to another one, and to an age identity. A machine that has only the new one copies
// nothing, where it would begin without what was copied before, and does not recover; one that has all does both.
func TestRotation(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	m := newMachine(t)
	c := m.prepareWithPassphrase(t)
	m.start(c.serveFlags()...)
	bucket := m.createBucket("files")
	n := 0
	upload := func() {
		t.Helper()
		n++
		if err := m.uploadObject(t.Context(), bucket, n); err != nil {
			t.Fatal(err)
		}
		m.awaitCopied()
	}
	upload()
	m.stop()

	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	next := copied{url: c.url, passphrase: write("next", "e f g h\n")}
	both := copied{url: c.url, passphrase: write("both", "e f g h\na b c d\n")}
	m.mustRun("offsite", "rotate", c.url, "--passphrase-file", c.passphrase, "--new-passphrase-file", next.passphrase, "--yes")
	m.start(next.serveFlags()...)
	testenv.Eventually(t, "the copy to say what is missing", func() bool {
		var status wire.Offsite
		m.must("GET", "/account/offsite", nil, &status)
		return status.Problem != nil && strings.Contains(*status.Problem, "does not open all of the copy")
	})
	m.stop()
	m.start(both.serveFlags()...)
	upload()
	m.stop()

	age := newIdentity(t, c.url)
	m.mustRun("offsite", "rotate", c.url, "--passphrase-file", both.passphrase, "--recipient", age.recipient, "--yes")
	m.start(append(both.serveFlags(), "--offsite-identity", age.identity)...)
	upload()
	m.killAll()

	fresh := m.elsewhere()
	for flags, says := range map[string]string{
		"--identity " + age.identity:           "master key 1",
		"--passphrase-file " + both.passphrase: "of the last rotation, too",
		"--passphrase-file " + next.passphrase: "master key 1",
		"--passphrase-file " + write("x", "x"): "neither the passphrase nor an identity",
		"--passphrase-file " + c.passphrase:    "of the last rotation, too",
	} {
		args := append([]string{"recover", c.url, "--yes", "--take-over", "--listen", "127.0.0.1:0"}, strings.Fields(flags)...)
		if out, stderr, code := fresh.run("", args...); code == 0 || !strings.Contains(stderr, says) {
			t.Errorf("recover with %s: exit code %d, %s%s", flags, code, out, stderr)
		}
	}
	fresh.recoverFrom(both, "--identity", age.identity)
	for i := 1; i <= n; i++ {
		response, content := fresh.download(bucket, "many/"+string(rune('0'+i)), http.MethodGet, "")
		if response.StatusCode != http.StatusOK || content != manyContent(i) {
			t.Errorf("object %d: %d, %d bytes", i, response.StatusCode, len(content))
		}
	}
}
