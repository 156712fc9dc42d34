package offsite

import (
	"strings"
	"testing"
)

// TestRecoverFromAnotherCopy: a recovery goes on from its own copy only.
func TestRecoverFromAnotherCopy(t *testing.T) {
	t.Parallel()
	own, _ := preparedDirectory(t)
	other, _ := preparedDirectory(t)
	want, got := own.open(t).marker.Repository, other.open(t).marker.Repository
	dir := t.TempDir()
	plan, err := newPlan(dir, recoveryPlan{Format: recoveryFormat, Repository: want, Step: stepServe})
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []Location{own, other} {
		s := &Service{location: at, recovery: &secondPhase{store: plan}}
		_, read := s.reader(t.Context())
		s.closeReader()
		_, again := Recover(t.Context(), RecoverOptions{Location: at, DataDir: dir})
		for _, err := range []error{read, again} {
			if at.URL == own.URL {
				if err != nil {
					t.Errorf("of its own copy: %v", err)
				}
				continue
			}
			if err == nil || isAboutStore(err) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), got) {
				t.Errorf("of another copy: %v", err)
			}
		}
	}
}
