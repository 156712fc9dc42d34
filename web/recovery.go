package web

import (
	"cmp"
	"time"

	"holdfast/engine/model"
	"holdfast/engine/recovery"
)

// planData is what recovery_plan.html shows: the effect of a restore before it
// is made.
type planData struct {
	databaseData
	Plan  recovery.RestorePlan
	At    time.Time // the requested time
	Point string    // the same time, as the form sends it
}

// recoveryPlan shows the plan for a point in time. If the point cannot be
// reached, it shows the error on the page where the user chose it.
func (req *request) recoveryPlan(db databaseData, cause error) (answer, error) {
	point := cmp.Or(req.form("at"), req.r.URL.Query().Get("at"))
	at, err := parsePoint(point)
	if err != nil {
		return req.backups(db, cmp.Or(cause, err))
	}
	plan, err := req.engine.Recovery.RestorePlan(req.r.Context(), req.call, db.ID, recovery.RestorePoint{Time: at}, nil)
	if err != nil {
		return req.backups(db, cmp.Or(cause, err))
	}
	return answer{page: "recovery_plan.html", data: planData{databaseData: db, Plan: plan, At: at, Point: point}}, cause
}

func (req *request) recoveryRestore() (answer, error) {
	at, err := parsePoint(req.form("at"))
	if err == nil {
		err = req.confirmDatabase()
	}
	if err == nil {
		_, err = req.engine.Recovery.RecoveryRestore(req.call, req.id(), recovery.RestorePoint{Time: at}, nil)
	}
	return done(req.databasePath("backups"), "restore_started"), err
}

// parsePoint parses the value of a browser's datetime field, in UTC, with or
// without seconds and fractions.
func parsePoint(text string) (time.Time, error) {
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04", time.RFC3339} {
		if at, err := time.Parse(layout, text); err == nil {
			return at.UTC(), nil
		}
	}
	return time.Time{}, model.Invalid("at", "must be a moment in UTC, such as 2026-01-31T12:00:00")
}
