package importer

import (
	"fmt"
	"slices"
	"time"

	"holdfast/engine/model"
)

// mostStale bounds the number of stale views in the record. Further ones are only in the log.
const mostStale = 200

// viewRefused records that a materialized view keeps the rows that it has, and logs it if that or its cause is new.
func (a *Account) viewRefused(v view, cause error) {
	flaw := newFlaw(v.String(), cause)
	isNew := true
	a.ChangeFollow(func(follow *model.ImportFollow) {
		views := slices.Clone(follow.StaleViews)
		if at := staleAt(views, flaw.Object); at >= 0 {
			isNew = views[at].Message != flaw.Message
			views[at].Message = flaw.Message
		} else if len(views) < mostStale {
			views = append(views, model.StaleView{Name: flaw.Object, Since: a.clock(), Message: flaw.Message})
		}
		follow.StaleViews = views
	})
	if isNew {
		a.Say(model.ImportWarning, fmt.Sprintf("the materialized view %s cannot be filled, so it keeps earlier rows or none: %s. It is tried again", flaw.Object, flaw.Message))
	}
}

// viewFilled records that a materialized view has the rows of now.
func (a *Account) viewFilled(v view) {
	name, wasStale := oneLine(v.String()), false
	a.ChangeFollow(func(follow *model.ImportFollow) {
		if at := staleAt(follow.StaleViews, name); at >= 0 {
			follow.StaleViews, wasStale = slices.Delete(slices.Clone(follow.StaleViews), at, at+1), true
		}
	})
	if wasStale {
		a.Say(model.ImportInfo, "the materialized view "+name+" is filled again")
	}
}

// noteStale records as a flaw that a materialized view has rows from before the cutover because filling it failed.
func (a *Account) noteStale(v view) {
	follow := a.Snapshot().Follow
	if follow == nil {
		return
	}
	if at := staleAt(follow.StaleViews, oneLine(v.String())); at >= 0 {
		stale := follow.StaleViews[at]
		a.flaw(v.data(), fmt.Errorf("its rows are from before %s, because filling it fails since then: %s; mend that and run REFRESH MATERIALIZED VIEW %s",
			stale.Since.UTC().Format(time.RFC3339), stale.Message, v.sanitized()))
	}
}

func staleAt(views []model.StaleView, name string) int {
	return slices.IndexFunc(views, func(v model.StaleView) bool { return v.Name == name })
}
