package offsite

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"holdfast/internal/durable"
)

// Directory is the directory below the data directory in which the machine keeps
// what it knows of its copy: nothing of it is needed for a recovery.
const Directory = "offsite"

const stateFile = "state.json"

// State is what a machine knows of its copy.
type State struct {
	Format int `json:"format"`
	// Repository is that of the Marker in which this machine has claimed an epoch.
	Repository string `json:"repository"`
	// Tokens are those of the claims that this machine made or tried, newest last.
	Tokens []string `json:"tokens"`
	// Claimed is that of the newest claim that succeeded: the newest of Tokens, or the one before it.
	Claimed string `json:"claimed,omitempty"`
	// Covered is the moment that the copy reached at the newest checkpoint.
	Covered time.Time `json:"covered,omitzero"`
	// Verified is the result of the newest verification, nil before the first.
	Verified *Verified `json:"verified,omitempty"`
	// Restored is the result of the newest trial restore, nil before the first.
	Restored *Restored `json:"restored,omitempty"`
	// TakeOver makes the next claim one that takes over from another machine. The claim clears it.
	TakeOver bool `json:"take_over,omitempty"`
	// Foreign means that the newest checkpoint is that of the machine from which this one has taken over.
	Foreign bool `json:"foreign,omitempty"`
	// Fenced is set once another machine has taken over.
	Fenced *Fenced `json:"fenced,omitempty"`
}

// Fenced says which machine has taken over.
type Fenced struct {
	Machine string    `json:"machine"`
	Epoch   string    `json:"epoch"`
	At      time.Time `json:"at"` // when it claimed
}

const stateFormat = 1

// maxTokens is how many tokens are kept. Only that of the newest claim matters, and a
// machine that is killed before it notes that a claim succeeded uses its token once more.
const maxTokens = 64

// ReadState returns the state of a data directory: an empty one where there is none.
func ReadState(dir string) (State, error) {
	s := State{Format: stateFormat}
	text, err := os.ReadFile(filepath.Join(dir, Directory, stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		return s, fmt.Errorf("read the state of the off-site copy: %w", err)
	}
	if s.Format != stateFormat {
		return s, fmt.Errorf("%s has format %d, which this version of holdfast does not know: use the version that wrote it",
			filepath.Join(dir, Directory, stateFile), s.Format)
	}
	return s, nil
}

// Write stores the state durably.
func (s State) Write(dir string) error {
	text, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("encode the state of the off-site copy: %w", err)
	}
	path := filepath.Join(dir, Directory)
	if err := durable.EnsureDir(durable.OS{}, path); err != nil {
		return fmt.Errorf("write the state of the off-site copy: %w", err)
	}
	if err := durable.WriteFile(filepath.Join(path, stateFile), text, 0o600); err != nil {
		return fmt.Errorf("write the state of the off-site copy: %w", err)
	}
	return nil
}

// enter returns the state for a repository: what is known of another one does not hold for it.
func (s State) enter(repository string) State {
	if s.Repository != repository {
		s.Repository, s.Covered, s.Verified, s.Restored = repository, time.Time{}, nil, nil
	}
	return s
}

// withToken returns the state with a token for the next claim, which must be stored before it is
// used. One whose claim has not succeeded is used again: however many claims fail, the token of the
// last that succeeded is kept.
func (s State) withToken() State {
	if len(s.Tokens) > 0 && s.token() != s.Claimed {
		return s
	}
	s.Tokens = append(slices.Clone(s.Tokens), rand.Text())
	s.Tokens = s.Tokens[max(0, len(s.Tokens)-maxTokens):]
	return s
}

// token returns the newest token.
func (s State) token() string { return s.Tokens[len(s.Tokens)-1] }
