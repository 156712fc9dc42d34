package importer

import (
	"testing"

	"holdfast/engine/postgres/postgrestest"
)

func TestMain(m *testing.M) { postgrestest.Main(m) }
