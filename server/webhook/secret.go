package webhook

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"holdfast/internal/durable"
)

// secretPrefix begins the text of a secret, as in Standard Webhooks.
const secretPrefix = "whsec_"

// loadSecret reads the signing key, or creates one of 32 random bytes in a file of mode 0600.
func loadSecret(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		key := make([]byte, 32)
		_, _ = rand.Read(key)
		return key, durable.WriteFile(path, []byte(secretPrefix+base64.StdEncoding.EncodeToString(key)+"\n"), 0o600)
	}
	if err != nil {
		return nil, err
	}
	encoded, ok := strings.CutPrefix(strings.TrimSpace(string(text)), secretPrefix)
	key, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil || len(key) < 24 {
		return nil, fmt.Errorf("%s is not %s and at least 24 bytes in base64", path, secretPrefix)
	}
	return key, nil
}
