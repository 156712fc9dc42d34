package databases

import (
	"testing"
	"time"

	"holdfast/engine/model"
)

// A role can give itself a verifier that would take an hour to compute.
func TestVerifierIsNotABurden(t *testing.T) {
	t.Parallel()
	began := time.Now()
	burden := model.NewSecret("SCRAM-SHA-256$2000000000:AAAAAAAAAAAAAAAAAAAAAA==$x:y")
	if new(knownVerifiers).fits("db_1", burden, model.NewSecret("the stored one")) || time.Since(began) > time.Second {
		t.Errorf("it took %v", time.Since(began))
	}
}
