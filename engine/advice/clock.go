package advice

import (
	"fmt"
	"time"

	"holdfast/engine/model"
)

// clockAhead reports that the machine's clock is not believed.
func clockAhead(f Facts) []model.Recommendation {
	if f.ClockAhead == 0 {
		return nil
	}
	return []model.Recommendation{{
		Code: "clock_leapt", Severity: model.SeverityWarning, Category: model.CategoryBackup,
		Title: "The clock is far ahead",
		Message: fmt.Sprintf("The machine's clock says %s, %.1f days ahead of where it was expected: it is wrong, or the machine was off. "+
			"Backups, what is in the trash and whatever else is removed for its age are kept until the appliance has run for another %.0f hours. "+
			"If the clock is wrong, have the operator set it right before that.", f.Now.UTC().Format(time.RFC3339), f.ClockAhead.Hours()/24, f.ClockGrace.Hours()),
		Evidence: map[string]any{"clock": f.Now, "ahead_seconds": int64(f.ClockAhead.Seconds()), "kept_for_seconds": int64(f.ClockGrace.Seconds())},
	}}
}
