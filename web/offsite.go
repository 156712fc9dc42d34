package web

import (
	"strings"

	"holdfast/engine/model"
	"holdfast/engine/offsite"
)

// offsiteData is what offsite.html shows.
type offsiteData struct {
	offsite.Status
	Damaged  int    // objects, when the copy was last read back
	Affected string // what they are, "" where that is unknown
	Away     string // what a recovery has yet to bring back, "" once it has ended
	Back     int    // databases that a recovery has brought back
}

func newOffsiteData(s offsite.Status) offsiteData {
	data := offsiteData{Status: s}
	if s.Verified != nil {
		data.Damaged, data.Affected = len(s.Verified.Damage), strings.Join(s.Verified.Kinds(), ", ")
	}
	if s.Recovery == nil {
		return data
	}
	for _, d := range s.Recovery.Databases {
		if d.Done {
			data.Back++
		}
	}
	if s.Recovery.EndedAt == nil {
		data.Away = describeAway(*s.Recovery)
	}
	return data
}

// Remedy says what a recovery brings back from a copy that is damaged, and what the operator does about it.
func (d offsiteData) Remedy() string { return model.OffsiteDamage(d.Verified.Point != nil) }

// describeAway says which databases a recovery has yet to bring back.
func describeAway(r offsite.RecoveryReport) string {
	var names []string
	for _, d := range r.Databases {
		if !d.Done && !d.Trash && !d.Left && d.Error == "" {
			names = append(names, d.Name)
		}
	}
	if len(names) == 0 && len(r.Missing()) > 0 {
		return "Large objects follow, and those that are asked for come at once."
	}
	if len(names) == 0 {
		return "All databases are back; large objects follow, and those that are asked for come at once."
	}
	return "To follow: the databases " + strings.Join(names, ", ") + ", then large objects."
}

func (req *request) offsite() (answer, error) {
	req.call.Resource.ID = req.call.Organization
	status, err := req.engine.Offsite.StatusFor(req.call.Organization)
	return answer{page: "offsite.html", title: "Off-site copy", data: newOffsiteData(status), live: req.engine.Offsite.Enabled()}, err
}
