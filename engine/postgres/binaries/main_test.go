package binaries_test

import (
	"context"
	"testing"
	"time"

	"holdfast/engine/postgres"
	"holdfast/engine/postgres/postgrestest"
)

func TestMain(m *testing.M) { postgrestest.Main(m) }

// supervisor returns a supervisor that is closed at the end of the test.
func supervisor(t *testing.T) *postgres.Supervisor {
	t.Helper()
	s := postgres.NewSupervisor(postgres.SupervisorOptions{})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}
