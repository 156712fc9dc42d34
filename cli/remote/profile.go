package remote

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/BurntSushi/toml"

	"holdfast/internal/durable"
)

// profile is stored in a file of its own, so that two concurrent logins do not
// undo each other. It contains the key: mode 0600, in a directory of mode 0700.
type profile struct {
	URL           string `toml:"url"` // with the version
	APIKey        string `toml:"api_key"`
	KeyID         string `toml:"key_id,omitempty"`
	CACertificate string `toml:"ca_certificate,omitempty"` // PEM
	Project       string `toml:"project,omitempty"`        // id
}

// defaultProfile is in use until another is chosen.
const defaultProfile = "default"

var profileForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// configDir returns holdfast's directory in the XDG config directory.
func configDir() (string, error) {
	if dir := os.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "holdfast"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find the config directory: %w; set XDG_CONFIG_HOME", err)
	}
	return filepath.Join(home, ".config", "holdfast"), nil
}

// profilePath validates a profile's name, so that it cannot lead elsewhere, and
// returns its path.
func profilePath(name string) (string, error) {
	if !profileForm.MatchString(name) {
		return "", usagef("profile: %q is not a name of letters, digits, dots, hyphens and underscores", name)
	}
	dir, err := configDir()
	return filepath.Join(dir, "profiles", name+".toml"), err
}

func readProfile(name string) (profile, error) {
	var p profile
	path, err := profilePath(name)
	if err != nil {
		return p, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return p, err
	}
	if _, err := toml.Decode(string(text), &p); err != nil {
		return p, fmt.Errorf("read %s: %w; `holdfast login --profile %s` replaces it", path, err, name)
	}
	return p, nil
}

func writeProfile(name string, p profile) error {
	path, err := profilePath(name)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := toml.NewEncoder(&text).Encode(p); err != nil {
		return fmt.Errorf("encode profile: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("make the config directory: %w", err)
	}
	return durable.WriteFile(path, text.Bytes(), 0o600)
}

// removeProfile removes a profile; the error is fs.ErrNotExist if there is
// none.
func removeProfile(name string) error {
	path, err := profilePath(name)
	if err != nil {
		return err
	}
	return os.Remove(path)
}

// currentProfile returns the name of the profile in use.
func currentProfile() string {
	dir, err := configDir()
	if err != nil {
		return defaultProfile
	}
	text, err := os.ReadFile(filepath.Join(dir, "current"))
	if name := strings.TrimSpace(string(text)); err == nil && profileForm.MatchString(name) {
		return name
	}
	return defaultProfile
}

func useProfile(name string) error {
	dir, err := configDir()
	if err != nil {
		return err
	}
	return durable.WriteFile(filepath.Join(dir, "current"), []byte(name+"\n"), 0o600)
}

// listProfiles returns the names of all profiles.
func listProfiles() ([]string, error) {
	dir, err := configDir()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(filepath.Join(dir, "profiles"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list profiles: %w", err)
	}
	names := []string{}
	for _, entry := range entries {
		if name, ok := strings.CutSuffix(entry.Name(), ".toml"); ok && profileForm.MatchString(name) {
			names = append(names, name)
		}
	}
	return names, nil
}
