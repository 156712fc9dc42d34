package databases

import (
	"fmt"
	"path/filepath"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// MarkForRebuild marks the databases whose data directories are not below dir, because the appliance was
// moved or recovered without them, and drops references to replaced data, which is never there. It
// returns all databases. Nothing else has the metadata open.
func MarkForRebuild(db *meta.DB, dir string) (all []model.Database, err error) {
	if err := db.View(func(tx *meta.Tx) error {
		return tx.Databases().All(func(d model.Database) error {
			d.Replaced = nil
			all = append(all, d)
			return nil
		})
	}); err != nil {
		return nil, err
	}
	for i, d := range all {
		all[i].Rebuild = !d.Sandbox && core.Absent(filepath.Join(dir, "instances", d.ID), fmt.Sprint(d.Generation))
	}
	return all, db.Update(func(tx *meta.Tx) error {
		for _, d := range all {
			if err := tx.Databases().Change(d.ID, func(now *model.Database) { *now = d }); err != nil {
				return err
			}
		}
		return nil
	})
}
