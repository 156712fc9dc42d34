package advice

import (
	"fmt"
	"slices"
	"time"

	"holdfast/engine/model"
)

// Offsite is the copy of the appliance in a store elsewhere.
type Offsite struct {
	State    model.OffsiteState
	Lag      time.Duration
	Backlog  int64  // bytes
	Problem  string // why nothing is copied, "" if it is
	Machine  string // that has taken over, "" for none
	Verified *time.Time
	Damaged  int // objects, when it was verified
	// Unusable means that nothing could be recovered then.
	Unusable bool
	// Unrestorable is the database that could not be restored from it, "" for none.
	Unrestorable string
	// Unreadable is what cannot be read on this machine and copied: ids of databases, "" for objects, and model.OffsiteSecrets.
	Unreadable []string
	Foreign    int // objects in the store that somebody else has put there
	Since      time.Time
	Tier
}

// offsiteFenced reports that another machine has taken over.
func offsiteFenced(f Facts) []model.Recommendation {
	if f.Offsite.State != model.OffsiteFenced {
		return nil
	}
	return []model.Recommendation{{
		Code: "offsite_fenced", Severity: model.SeverityCritical, Category: model.CategoryBackup,
		Title: "Another machine has taken over",
		Message: fmt.Sprintf("%s has taken over from this machine, which is read-only since. Work there, and switch this one off; or have the operator stop both and run "+
			"`holdfast offsite take-over` on this one.", f.Offsite.Machine),
		Evidence: map[string]any{"machine": f.Offsite.Machine, "taken_over_at": f.Offsite.Since},
	}}
}

// offsiteBehind reports that the copy lacks what happened for some time.
func offsiteBehind(f Facts) []model.Recommendation {
	o := f.Offsite
	if o.State == model.OffsiteOff || o.State == model.OffsiteFenced || o.Lag < f.Limits.OffsiteBehind {
		return nil
	}
	message := fmt.Sprintf("The copy off-site is %s behind: what happened since would be lost with this machine.", o.Lag.Round(time.Second))
	if o.Problem != "" {
		message += " Nothing is copied because " + o.Problem + ". The appliance keeps everything that waits and catches up by itself."
	} else {
		message += " It is being copied; if that goes on, the line to the store is too slow, or --offsite-bandwidth too low."
	}
	return []model.Recommendation{{
		Code: "offsite_behind", Severity: model.SeverityCritical, Category: model.CategoryBackup,
		Title: "The copy off-site is behind", Message: message,
		Evidence: map[string]any{"lag_seconds": int64(o.Lag.Seconds()), "backlog_bytes": o.Backlog, "problem": o.Problem},
		Action:   &model.RecommendedCall{Method: "GET", Path: "/v1/account/offsite"},
	}}
}

// offsiteDamaged reports that the copy could not be read back whole.
func offsiteDamaged(f Facts) []model.Recommendation {
	if f.Offsite.Damaged == 0 {
		return nil
	}
	return []model.Recommendation{{
		Code: "offsite_damaged", Severity: model.SeverityCritical, Category: model.CategoryBackup,
		Title:    "The copy off-site is damaged",
		Message:  model.Count(int64(f.Offsite.Damaged), "object") + " could not be read back. " + model.OffsiteDamage(!f.Offsite.Unusable),
		Evidence: map[string]any{"damaged_objects": f.Offsite.Damaged, "verified_at": f.Offsite.Verified},
		Action:   &model.RecommendedCall{Method: "GET", Path: "/v1/account/offsite"},
	}}
}

// offsiteUnrestorable reports that a trial restore from the copy failed.
func offsiteUnrestorable(f Facts) []model.Recommendation {
	if f.Offsite.Unrestorable == "" {
		return nil
	}
	return []model.Recommendation{{
		Code: "offsite_unrestorable", Severity: model.SeverityCritical, Category: model.CategoryBackup,
		Title: "A database could not be restored from the copy off-site",
		Message: fmt.Sprintf("A trial restore of %s from the copy off-site alone failed. The appliance's log says why; have the operator run `holdfast offsite verify`, "+
			"and make a backup of the database.", f.Offsite.Unrestorable),
		Action: &model.RecommendedCall{Method: "GET", Path: "/v1/account/offsite"},
	}}
}

// offsiteForeign reports that somebody else writes to the store.
func offsiteForeign(f Facts) []model.Recommendation {
	if f.Offsite.Foreign == 0 {
		return nil
	}
	return []model.Recommendation{{
		Code: "offsite_foreign", Severity: model.SeverityCritical, Category: model.CategorySecurity,
		Title: "Somebody else writes to the store of the copy off-site",
		Message: fmt.Sprintf("%s in the store pretend to be claims of other machines, and were made without the master key. They are passed over, and copying goes on. The appliance's log names "+
			"them; have the operator change the credentials of the store, and find out who has them.", model.Count(int64(f.Offsite.Foreign), "object")),
		Evidence: map[string]any{"objects": f.Offsite.Foreign},
	}}
}

// offsiteUnreadable reports that files of a database, of objects, or with secrets, cannot be read on this machine and so not be copied.
func offsiteUnreadable(f Facts) (found []model.Recommendation) {
	for _, id := range f.Offsite.Unreadable {
		r := model.Recommendation{
			Code: "offsite_unreadable", Severity: model.SeverityCritical, Category: model.CategoryBackup,
			Title: "Objects cannot be copied off-site",
			Message: "Files of objects cannot be read on this machine, or are missing. The copy off-site keeps what it has of them. The appliance's log names them; " +
				"have the operator check the disk.",
		}
		if id == model.OffsiteSecrets {
			r.Title = "Secrets of the appliance cannot be copied off-site"
			r.Message = "secret.key, or another file with secrets, cannot be read on this machine, or is missing. The copy off-site keeps what it has of it. The appliance's log names " +
				"the file; have the operator bring it back: without secret.key the appliance does not start again."
		} else if id != "" {
			i := slices.IndexFunc(f.Databases, func(db Database) bool { return db.ID == id })
			if i < 0 {
				continue
			}
			r.Resource = f.Databases[i].resource()
			r.Title = "Backups cannot be copied off-site"
			r.Message = fmt.Sprintf("Files of the backups or the WAL of %s cannot be read on this machine, or are missing. The copy off-site keeps what it has of them. The appliance's log names "+
				"the files; have the operator check the disk, and make a backup of the database.", f.Databases[i].Name)
		}
		found = append(found, r)
	}
	return found
}

// offsiteUnverified reports that the copy was not read back for long.
func offsiteUnverified(f Facts) []model.Recommendation {
	o := f.Offsite
	if o.State != model.OffsiteCopying || o.Verified == nil || f.Now.Sub(*o.Verified) < f.Limits.OffsiteUnverified {
		return nil
	}
	return []model.Recommendation{{
		Code: "offsite_unverified", Severity: model.SeverityWarning, Category: model.CategoryBackup,
		Title:    "The copy off-site was not verified for long",
		Message:  "A sample of the copy off-site is read back every day, and that has not succeeded for some time. The appliance's log says why.",
		Evidence: map[string]any{"verified_at": o.Verified},
		Action:   &model.RecommendedCall{Method: "GET", Path: "/v1/account/offsite"},
	}}
}
