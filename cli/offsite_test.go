package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/internal/testenv"
)

// store makes a directory for copies that the appliance's user can write, and a
// passphrase file.
func (m *machine) store(t testing.TB) (url, passphraseFile string) {
	t.Helper()
	dir := filepath.Join(filepath.Dir(m.dataDir), "store")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	passphraseFile = filepath.Join(filepath.Dir(m.dataDir), "passphrase")
	if err := os.WriteFile(passphraseFile, []byte("a b c d\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return "file://" + dir, passphraseFile
}

// TestOffsiteCommands prepares a store, and is refused what cannot be.
func TestOffsiteCommands(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	m := newMachine(t)
	url, passphrase := m.store(t)
	other := passphrase + ".other"
	if err := os.WriteFile(other, []byte("e f g h\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	both := passphrase + ".both"
	if err := os.WriteFile(both, []byte("e f g h\na b c d\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	age := newIdentity(t, url)
	for _, step := range []struct {
		args string
		code int
		says string
	}{
		{"offsite verify " + url + " --passphrase-file " + passphrase, 5, "`holdfast offsite init " + url + "` prepares it"},
		{"offsite init " + url, 2, "--passphrase-file or --recipient"},
		{"offsite init http://example.com --passphrase-file " + passphrase, 2, "s3://bucket/prefix or file:///path"},
		{"offsite init " + url + " --passphrase-file " + passphrase, 2, "--yes says that the sheet is kept"},
		{"offsite init " + url + " --passphrase-file " + passphrase + " --yes", 0, "passphrase    a b c d"},
		{"offsite init " + url + " --passphrase-file " + passphrase + " --yes", 6, "choose an empty prefix"},
		{"offsite verify " + url + " --passphrase-file " + other, 4, "the recovery sheet says which one does"},
		{"offsite verify " + url + " --passphrase-file " + passphrase, 6, "there is no point"},
		{"offsite verify " + url + " --passphrase-file " + passphrase + " --sample 0%", 2, "a percentage above 0"},
		{"offsite prune " + url + " --passphrase-file " + passphrase + " --yes", 6, "nothing is removed"},
		{"offsite rotate " + url + " --passphrase-file " + other + " --new-passphrase-file " + both + " --yes", 4, "the recovery sheet says which one does"},
		{"offsite rotate " + url + " --passphrase-file " + passphrase + " --new-passphrase-file " + other, 2, "--yes says that the sheet is kept"},
		{"offsite rotate " + url + " --passphrase-file " + passphrase + " --new-passphrase-file " + other + " --json", 2, "--yes says that you have one"},
		{"offsite rotate " + url + " --passphrase-file " + passphrase + " --new-passphrase-file " + other + " --yes", 0, "passphrase    e f g h\n  earlier one   a b c d\n"},
		{"offsite verify " + url + " --passphrase-file " + other, 4, "what opens master key 1 of " + url + " is missing"},
		{"offsite rotate " + url + " --passphrase-file " + both + " --yes --json", 0, `{"master_key":3}`},
		{"offsite rotate " + url + " --passphrase-file " + both + " --recipient " + age.recipient + " --yes", 0, "offsite.passphrase --identity /root/offsite.identity"},
		{"offsite verify " + url + " --identity " + age.identity, 4, "what opens master key 1 of " + url + " is missing"},
		{"offsite verify " + url + " --passphrase-file " + both, 6, "there is no point"},
		{"offsite verify " + url + " --passphrase-file " + both + " --identity " + age.identity, 6, "there is no point"},
		{"offsite rotate " + url + " --identity " + age.identity + " --yes", 2, "what the new master key is encrypted with"},
		{"recover " + url + " --list --passphrase-file " + both + " --identity " + age.identity, 6, "there is nothing to recover"},
	} {
		out, stderr, code := m.run("", strings.Fields(step.args)...)
		if code != step.code || !strings.Contains(out+stderr, step.says) {
			t.Errorf("%s: exit code %d, %s%s", step.args, code, out, stderr)
		}
	}
}
