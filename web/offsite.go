package web

import "holdfast/engine/offsite"

// offsiteData is what offsite.html shows.
type offsiteData struct {
	offsite.Status
	Damaged int // objects, when the copy was last read back
}

func newOffsiteData(s offsite.Status) offsiteData {
	data := offsiteData{Status: s}
	if s.Verified != nil {
		data.Damaged = len(s.Verified.Damage)
	}
	return data
}

func (req *request) offsite() (answer, error) {
	req.call.Resource.ID = req.call.Organization
	return answer{page: "offsite.html", title: "Off-site copy", data: newOffsiteData(req.engine.Offsite.Status()), live: req.engine.Offsite.Enabled()}, nil
}
