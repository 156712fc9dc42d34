package testenv

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestLong(t *testing.T) {
	for value, want := range map[string]string{"": "", "1": "long ", "all": "long all "} {
		t.Run("set to "+value, func(t *testing.T) {
			t.Setenv(longVariable, value)
			ran := ""
			t.Run("long", func(t *testing.T) {
				Long(t)
				ran += "long "
			})
			t.Run("all", func(t *testing.T) {
				All(t)
				ran += "all "
			})
			if ran != want {
				t.Errorf("with %s=%q ran %q, want %q", longVariable, value, ran, want)
			}
		})
	}
}

// A short wait ends soon after what is waited for, and a long one takes few polls; Catch takes many.
func TestPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		polls := 0
		after := func(d time.Duration) func() bool {
			began := time.Now()
			polls = 0
			return func() bool { polls++; return time.Since(began) >= d }
		}
		if took := Within(t, time.Minute, "ten milliseconds", after(10*time.Millisecond)); took > 11*time.Millisecond {
			t.Errorf("noticed after %s", took)
		}
		if took := Within(t, time.Minute, "ten seconds", after(10*time.Second)); took > 10*time.Second+maxPause || polls > 1000 {
			t.Errorf("noticed after %s and %d polls", took, polls)
		}
		if took := Catch(t, time.Minute, "ten seconds", after(10*time.Second)); took > 10*time.Second+minPause || polls < 5000 {
			t.Errorf("caught after %s and %d polls", took, polls)
		}
		if Poll(time.Second, after(time.Hour)) {
			t.Error("an hour has passed in a second")
		}
	})
}

func TestEventually(t *testing.T) {
	polls := 0
	Eventually(t, "the third poll", func() bool { polls++; return polls == 3 })
	if polls != 3 {
		t.Errorf("%d polls", polls)
	}
}
