package web

import (
	"cmp"
	"time"

	"holdfast/engine/model"
	"holdfast/engine/recovery"
)

// planData is what recovery_plan.html shows: what a restore would do, before
// it is done.
type planData struct {
	databaseData
	Plan  recovery.RestorePlan
	At    time.Time // asked for
	Point string    // the same, as the form sends it
}

func (req *request) recoveryPlan() (answer, error) {
	return req.planPage(req.r.URL.Query().Get("at"), nil)
}

// planPage shows the plan for a moment; a moment that cannot be reached is
// shown on the page it was chosen on.
func (req *request) planPage(point string, cause error) (answer, error) {
	at, err := parsePoint(point)
	if err != nil {
		return req.backupsPage(cmp.Or(cause, err))
	}
	db, err := req.withDatabase("backups")
	if err != nil {
		return answer{}, err
	}
	plan, err := req.engine.Recovery.RestorePlan(req.r.Context(), req.call, db.ID, recovery.RestorePoint{Time: at}, nil)
	if err != nil {
		return req.backupsPage(cmp.Or(cause, err))
	}
	data := planData{databaseData: db, Plan: plan, At: at, Point: point}
	return answer{page: "recovery_plan.html", title: db.Name, data: data, live: db.busy()}, cause
}

func (req *request) recoveryAgain(cause error) (answer, error) {
	return req.planPage(req.form("at"), cause)
}

func (req *request) recoveryRestore() (answer, error) {
	point := req.form("at")
	at, err := parsePoint(point)
	if err != nil {
		return req.backupsPage(err)
	}
	if err := req.confirmDatabase(); err != nil {
		return req.planPage(point, err)
	}
	if _, err := req.engine.Recovery.RecoveryRestore(req.call, req.r.PathValue("id"), recovery.RestorePoint{Time: at}, nil); err != nil {
		return req.planPage(point, err)
	}
	return done(req.databasePath("backups"), "restore_started"), nil
}

// parsePoint reads a moment as a browser's field gives it, in UTC, with or
// without seconds and their parts.
func parsePoint(text string) (time.Time, error) {
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04", time.RFC3339} {
		if at, err := time.Parse(layout, text); err == nil {
			return at.UTC(), nil
		}
	}
	return time.Time{}, model.Invalid("at", "must be a moment in UTC, such as 2026-01-31T12:00:00")
}
