package offsite

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"holdfast/engine/model"
	"holdfast/engine/offsite/stream"
	"holdfast/internal/testenv"
)

// TestSecrets copies the secrets, changes one and brings them back.
func TestSecrets(t *testing.T) {
	t.Parallel()
	from, to := t.TempDir(), t.TempDir()
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(from, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(from, tlsDirectory), 0o700); err != nil {
		t.Fatal(err)
	}
	write("secret.key", "a")
	write("tls/ca.key", "b")
	write("tls/ca.crt", "c")
	write("tls/ca.crt.new", "d")
	asked := make(chan struct{}, 10)
	p := newSecretPart(from, slog.New(slog.DiscardHandler), &unreadable{}, func() { asked <- struct{}{} })
	if err := p.start(nil, newKnown()); err != nil {
		t.Fatal(err)
	}
	defer p.stop()
	if _, err := p.entries(t.Context()); err != nil {
		t.Fatal(err)
	}
	write("webhook.secret", "e")
	testenv.Eventually(t, "a checkpoint is asked for", func() bool { return len(asked) == 1 })
	if _, err := p.entries(t.Context()); err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(from, "secret.key") // keeps its place in the copy
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "a checkpoint is asked for", func() bool { return len(asked) == 2 })
	entries, err := p.entries(t.Context())
	if err != nil || !slices.Equal(p.unreadable.all(), []string{model.OffsiteSecrets}) {
		t.Fatal(p.unreadable.all(), err)
	}
	restore := newSecretRestorer(to)
	for _, e := range entries {
		if err := restore.entry(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	if err := restore.finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, name := range []string{"secret.key", "webhook.secret", "tls/ca.key", "tls/ca.crt", "tls/ca.crt.new"} {
		content, _ := os.ReadFile(filepath.Join(to, name))
		got += fmt.Sprintf("%s=%s ", name, content)
	}
	if want := "secret.key=a webhook.secret=e tls/ca.key=b tls/ca.crt=c tls/ca.crt.new= "; got != want {
		t.Errorf("%s is brought back, want %s", got, want)
	}
	write("secret.key", "a")
	if _, err := p.entries(t.Context()); err != nil || len(p.unreadable.all()) > 0 {
		t.Error(p.unreadable.all(), err)
	}
	p.known = newKnown()
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	if _, err := p.entries(t.Context()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a copy without a key: %v", err)
	}
	for _, name := range []string{"../x", "tls/../x", "x", "tls/a/b", "/x"} {
		if err := restore.entry(t.Context(), stream.Entry{Kind: KindSecret, Name: name}); !errors.Is(err, stream.ErrVersion) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
