package engine

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/postgres/postgrestest"
)

// An import that cannot go on following at a start is rolled back, and its slot is dropped: one whose plan is damaged or of
// another version, and one that was cancelled before, also if its source is not known any more: then the slot remains.
func TestImportFollowThatCannotGoOn(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		says string
		harm func(*testing.T, *appliance, model.Import)
	}{
		"damaged plan": {"start the import again", func(t *testing.T, a *appliance, record model.Import) {
			db, err := a.Databases.Record(record.Database)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(a.Databases.DataDirectory(db.ID, db.Generation), "holdfast.follow")
			plan, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(strings.Replace(string(plan), "follow 1", "follow 9", 1)), 0o600); err != nil {
				t.Fatal(err)
			}
		}},
		"cancelled": {"cancelled by somebody", func(t *testing.T, a *appliance, record model.Import) {
			op := a.operationOf(t, record.Database)
			if err := a.Core.Meta.Update(func(tx *meta.Tx) error {
				return errors.Join(
					tx.Operations().Change(op, func(o *model.DatabaseOperation) { o.CancelledBy = &model.Actor{Name: "somebody"} }),
					tx.Imports().Change(record.ID, func(i *model.Import) {
						follow := *i.Follow
						follow.SourceURL = []byte("sealed by another key")
						i.Follow = &follow
					}),
				)
			}); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newRunning(t, postgrestest.Binaries(t), running)
			a := startMajors(t)
			record := a.follow(t, o, "")
			a.Core.Stop()
			a.Core.Work.Wait()
			test.harm(t, a, record)
			a.abandon(t)
			a = a.reopen(t)
			if now := a.importNow(t, record.ID); now.Status != model.ImportFailed || !strings.Contains(now.Error, test.says) {
				t.Errorf("the import is %s: %s", now.Status, now.Error)
			}
			if name != "cancelled" {
				o.checkNoSlot(t)
			}
			a.checkTidy(t)
		})
	}
}
