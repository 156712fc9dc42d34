package webhooks

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"holdfast/engine/model"
	"holdfast/internal/durable"
)

// secretPrefix begins the text of a secret, as in Standard Webhooks.
const secretPrefix = "whsec_"

// secretPurpose is what the secret of a webhook is sealed for.
func secretPurpose(id string) string { return "webhook " + id }

// newSecret returns the text of a new secret.
func newSecret() model.Secret {
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	return model.NewSecret(secretPrefix + base64.StdEncoding.EncodeToString(key))
}

// decodeSecret returns the key in the text of a secret.
func decodeSecret(text string) ([]byte, error) {
	encoded, ok := strings.CutPrefix(text, secretPrefix)
	key, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil || len(key) < 24 {
		return nil, fmt.Errorf("the secret is not %s and at least 24 bytes in base64", secretPrefix)
	}
	return key, nil
}

// loadKey reads the operator's key, or creates one in a file of mode 0600.
func loadKey(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		text = []byte(newSecret().Reveal() + "\n")
		err = durable.WriteFile(path, text, 0o600)
	}
	if err != nil {
		return nil, err
	}
	key, err := decodeSecret(strings.TrimSpace(string(text)))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return key, nil
}

// signatures returns the signature of a message by each key, separated by spaces.
func signatures(keys [][]byte, id, at string, body []byte) string {
	var all []string
	for _, key := range keys {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + at + "."))
		mac.Write(body)
		all = append(all, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	return strings.Join(all, " ")
}
