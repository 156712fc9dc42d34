package advice

import (
	"fmt"

	"holdfast/engine/model"
)

// Tier says where large objects are.
type Tier struct {
	// AwayObjects are in the copy off-site only, of AwayBytes.
	AwayObjects, AwayBytes int64
	// LocalBytes is what large objects take here, and LocalLimit what they may; 0 is no bound.
	LocalBytes, LocalLimit int64
	// Readable means that those away can be fetched although nothing is copied.
	Readable bool
}

// objectsUnreachable reports that objects are in the copy only, and it cannot be read.
func objectsUnreachable(f Facts) []model.Recommendation {
	o := f.Offsite
	if o.AwayObjects <= 0 || o.Readable || o.State != model.OffsiteOff && o.State != model.OffsiteFailing {
		return nil
	}
	message := fmt.Sprintf("%s (%d MB) are in the copy off-site only, and downloads of them fail while it cannot be read", model.Count(o.AwayObjects, "large object"), o.AwayBytes>>20)
	if o.State == model.OffsiteOff {
		message += ": have the operator start the appliance with the --offsite that it had."
	} else {
		message += ": " + o.Problem + "."
	}
	return []model.Recommendation{{
		Code: "objects_unreachable", Severity: model.SeverityCritical, Category: model.CategoryCapacity,
		Title: "Large objects may not be readable", Message: message,
		Evidence: map[string]any{"away_objects": o.AwayObjects, "away_bytes": o.AwayBytes, "problem": o.Problem},
		Action:   &model.RecommendedCall{Method: "GET", Path: "/v1/account/offsite"},
	}}
}

// objectsOverLimit reports that large objects take much more of the disk than they may.
func objectsOverLimit(f Facts) []model.Recommendation {
	o := f.Offsite
	if o.LocalLimit == 0 || o.LocalBytes < o.LocalLimit+o.LocalLimit/4 {
		return nil
	}
	return []model.Recommendation{{
		Code: "objects_over_limit", Severity: model.SeverityWarning, Category: model.CategoryCapacity,
		Title: "Large objects take more of the disk than they may",
		Message: fmt.Sprintf("They take %d MB, and may take %d MB. They leave once the copy off-site has them: if this lasts, uploads arrive faster than they are copied, "+
			"or too many are smaller than --objects-offsite-above.", o.LocalBytes>>20, o.LocalLimit>>20),
		Evidence: map[string]any{"local_bytes": o.LocalBytes, "local_limit_bytes": o.LocalLimit, "backlog_bytes": o.Backlog},
		Action:   &model.RecommendedCall{Method: "GET", Path: "/v1/account/offsite"},
	}}
}
