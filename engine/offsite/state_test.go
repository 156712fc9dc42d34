package offsite

import (
	"slices"
	"testing"
	"time"
)

// TestStateOfAnotherStore: what was known of one copy is not said of the next.
func TestStateOfAnotherStore(t *testing.T) {
	t.Parallel()
	s := State{Repository: "one", Covered: time.Now(), Verified: &Verified{}, Restored: &Restored{}, Claimed: "token"}
	if same := s.enter("one"); same.Covered.IsZero() || same.Verified == nil || same.Restored == nil {
		t.Errorf("of the same copy: %+v", same)
	}
	if other := s.enter("two"); other.Repository != "two" || !other.Covered.IsZero() || other.Verified != nil || other.Restored != nil || other.Claimed != "token" {
		t.Errorf("of another copy: %+v", other)
	}
}

// TestTokenOfTheLastClaim: claims that fail do not make a machine forget which one is its own.
func TestTokenOfTheLastClaim(t *testing.T) {
	t.Parallel()
	var s State
	for range 2 * maxTokens {
		before := s.Claimed
		s = s.withToken()
		tried := s.token()
		for range maxTokens {
			s = s.withToken()
		}
		if s.token() != tried || tried == before {
			t.Fatalf("after claims that failed the token is %s, it was %s, and %s before the last claim", s.token(), tried, before)
		}
		if before != "" && !slices.Contains(s.Tokens, before) {
			t.Fatal("the token of the last claim that succeeded is gone")
		}
		s.Claimed = tried
	}
	if len(s.Tokens) != maxTokens {
		t.Errorf("%d tokens are kept", len(s.Tokens))
	}
}
