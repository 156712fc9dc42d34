package testenv

import "testing"

func TestLong(t *testing.T) {
	for value, runs := range map[string]bool{"": false, "1": true} {
		t.Run("set to "+value, func(t *testing.T) {
			t.Setenv(longVariable, value)
			ran := false
			t.Run("long", func(t *testing.T) {
				Long(t)
				ran = true
			})
			if ran != runs {
				t.Errorf("with %s=%q the test ran: %v, want %v", longVariable, value, ran, runs)
			}
		})
	}
}

func TestEventually(t *testing.T) {
	polls := 0
	Eventually(t, "the third poll", func() bool { polls++; return polls == 3 })
	if polls != 3 {
		t.Errorf("%d polls", polls)
	}
}
