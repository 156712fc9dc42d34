package engine

import (
	"strings"
	"testing"
	"time"

	"holdfast/engine/advice"
	"holdfast/engine/model"
	"holdfast/engine/recovery"
)

// TestSleeperAnswersRequests: a request that needs the server of a database that sleeps wakes it.
func TestSleeperAnswersRequests(t *testing.T) {
	t.Parallel()
	a := startEngineOn(t, testConfig(t, newDataDir(t)), cloning)
	db, c := a.createDatabase(t, "shop")
	run(t, c, "create table t as select 1 as n")
	a.backUp(t, db.ID)
	a.letSleep(t, db.ID, time.Hour)
	branch, _ := a.branch(t, db.ID, recovery.NewBranch{Name: "try"})
	makeBranch := func(name string) func() error {
		return func() error {
			made, err := a.Recovery.BranchCreate(t.Context(), a.call(model.ActionBranchCreate), db.ID, recovery.NewBranch{Name: name})
			if err == nil {
				a.awaitOperation(t, made.Started, model.OperationCompleted)
			}
			return err
		}
	}
	for _, request := range []struct {
		what string
		send func() error
	}{
		{"statements", func() error {
			_, err := a.Insight.Statements(t.Context(), a.call(model.ActionStatementList), db.ID, advice.ByTotalTime)
			return err
		}},
		{"locks", func() error {
			_, err := a.Databases.Locks(t.Context(), a.call(model.ActionLockList), db.ID)
			return err
		}},
		{"plan", func() error {
			record, err := a.Databases.Record(db.ID)
			if err == nil {
				_, err = a.Databases.Explain(t.Context(), record, "select * from t")
			}
			return err
		}},
		{"settings", func() error {
			_, err := a.Databases.SettingList(t.Context(), a.call(model.ActionSettingsList), db.ID)
			return err
		}},
		{"slot", func() error {
			err := a.Databases.ReplicationSlotDrop(t.Context(), a.call(model.ActionReplicationSlotDrop), db.ID, "none", false)
			if model.CodeOf(err) == model.CodeNotFound && strings.Contains(err.Error(), "no replication slot") {
				return nil
			}
			return err
		}},
		{"branch by clone", makeBranch("cloned")},
		{"branch by restore", func() error {
			neverCloning(a.Engine)
			defer cloning(a.Engine)
			return makeBranch("restored")()
		}},
		{"difference", func() error {
			a.sleepSoon(t, branch.ID)
			_, err := a.Recovery.BranchDiff(t.Context(), a.call(model.ActionBranchDiff), branch.ID)
			return err
		}},
		{"reset", func() error {
			a.sleepSoon(t, branch.ID)
			made, err := a.Recovery.BranchReset(t.Context(), a.call(model.ActionBranchReset), branch.ID, time.Time{})
			if err == nil {
				a.awaitOperation(t, made.Started, model.OperationCompleted)
			}
			return err
		}},
	} {
		a.sleepSoon(t, db.ID)
		if err := request.send(); err != nil {
			t.Errorf("%s: %v", request.what, err)
		}
	}
}
