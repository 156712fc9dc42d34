package offsite_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"holdfast/engine"
	"holdfast/engine/model"
	"holdfast/engine/offsite"
	"holdfast/engine/postgres/postgrestest"
	"holdfast/internal/testenv"
)

// TestPurgedBeforeFetched: a database in the trash that is removed for good before its files were fetched stays away.
func TestPurgedBeforeFetched(t *testing.T) {
	m, _, old := withTrash(t, "")
	m.recover()
	postgrestest.LinkTemplate(t, postgrestest.Binaries(t), filepath.Join(m.cfg.DataDir, "warm"))
	e, err := engine.Open(m.cfg)
	if err != nil {
		t.Fatal(err)
	}
	m.Engine, m.closed = e, false
	if err := e.Databases.TrashPurge(m.call(model.ActionTrashPurge), old); err != nil {
		t.Fatal(err)
	}
	if err := e.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if report := m.awaitRecovered(); len(report.Databases) != 1 || !report.Databases[0].Done {
		t.Errorf("the report: %+v", report)
	}
	for _, name := range []string{"backups/" + old, "offsite/fetch/" + old + ".json"} {
		if _, err := os.Stat(filepath.Join(m.cfg.DataDir, name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	testenv.Within(t, time.Minute, "the copy", func() bool { return m.Offsite.Status().State == model.OffsiteCopying })
	m.awaitCopied()
	if names, err := offsite.NewestNames(t.Context(), m.at, old, offsite.KindRepository); err != nil || len(names) > 0 {
		t.Errorf("the copy has %v, %v", names, err)
	}
}
