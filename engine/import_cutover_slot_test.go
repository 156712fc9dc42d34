package engine

import (
	"fmt"
	"strings"
	"testing"

	"holdfast/engine/model"
	"holdfast/engine/postgres/postgrestest"
)

// A slot that a cutover cannot drop is an error of the import.
func TestImportCutoverThatCannotDropItsSlot(t *testing.T) {
	t.Parallel()
	o := newRunning(t, postgrestest.Binaries(t), running)
	a := startMajors(t)
	record := a.follow(t, o, "")
	o.execute(t, "alter role mover noreplication")
	record, err := a.cutOver(t, record.ID)
	if err != nil {
		t.Fatal(err)
	}
	a.awaitIdle(t)
	if said := fmt.Sprint(record.Errors); record.Status != model.ImportCompletedWithErrors || !strings.Contains(said, "SELECT pg_drop_replication_slot('"+record.Follow.Slot+"');") {
		t.Errorf("the import is %s: %s", record.Status, said)
	}
}
