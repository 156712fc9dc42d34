package web

import (
	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/model"
)

// upgradeData is what the settings page shows about upgrades of a database.
type upgradeData struct {
	Versions []databases.Version      // newer ones of this machine
	Last     *model.DatabaseOperation // the last upgrade or dry run
}

// upgradeOf returns what the page shows about upgrades.
func (req *request) upgradeOf(db databaseData) (data upgradeData, err error) {
	all, err := req.engine.Databases.Versions(req.r.Context(), req.call)
	if err != nil {
		return data, err
	}
	for _, v := range all {
		if v.Major > db.Major && v.Upgrades() {
			data.Versions = append(data.Versions, v)
		}
	}
	for _, kind := range []model.OperationType{model.OperationUpgrade, model.OperationUpgradeDryRun} {
		list, err := req.engine.Databases.OperationList(req.call, databases.OperationFilter{Database: db.ID, Type: kind}, core.Page{Limit: 1})
		if err != nil {
			return data, err
		}
		for _, op := range list.Items {
			if data.Last == nil || op.ID > data.Last.ID {
				data.Last = &op
			}
		}
	}
	return data, nil
}

// databaseUpgrade begins an upgrade, or a dry run, which needs no confirmation.
func (req *request) databaseUpgrade() (answer, error) {
	dryRun := req.form("mode") != "upgrade"
	if !dryRun {
		if err := req.confirmDatabase(); err != nil {
			return answer{}, err
		}
	}
	_, err := req.engine.Recovery.UpgradeDatabase(req.r.Context(), req.call, req.id(), req.form("version"), dryRun)
	if dryRun {
		return done(req.databasePath("settings"), "upgrade_tried"), err
	}
	return done(req.databasePath(""), "upgrade_started"), err
}
