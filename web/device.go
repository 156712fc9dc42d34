package web

import (
	"time"

	"holdfast/engine/access"
	"holdfast/engine/model"
)

// deviceData is what device.html and device_done.html show.
type deviceData struct {
	Code    string // as typed, or normalized once it is known
	Device  *model.DeviceAuthorization
	Presets []model.Preset // the available presets, the requested one first
	TooMuch bool           // the user may not grant the requested preset
	Lives   []keyLife
	Chosen  model.Preset
	Life    string
	// Approved is the decision, on the page that follows it.
	Approved bool
}

// ClientName returns the tool's name for itself, which is unverified.
func (d deviceData) ClientName() string {
	if d.Device == nil || d.Device.ClientName == "" {
		return "A tool that gives no name"
	}
	return d.Device.ClientName
}

func (req *request) device() (answer, error) {
	typed := req.r.URL.Query().Get("user_code")
	if typed == "" {
		return answer{page: "device.html", title: "Connect a tool", data: deviceData{}}, nil
	}
	return req.review(typed)
}

// review shows what a tool requests; it approves nothing.
func (req *request) review(typed string) (answer, error) {
	a := answer{page: "device.html", title: "Connect a tool", data: deviceData{Code: printable(typed, 40)}}
	d, err := req.engine.Access.DeviceReview(req.call, req.person, typed)
	if err != nil {
		return a, err
	}
	data := deviceData{Code: model.NormalizeUserCode(typed), Device: &d, Lives: keyLives(), Life: defaultLife}
	for _, p := range model.Presets() {
		if d.Preset.Includes(p) && req.person.User.Role.MayGrant(p) {
			data.Presets = append([]model.Preset{p}, data.Presets...)
		}
	}
	data.TooMuch = !req.person.User.Role.MayGrant(d.Preset)
	if len(data.Presets) > 0 {
		data.Chosen = data.Presets[0]
	}
	a.data = data
	return a, nil
}

func (req *request) deviceApprove() (answer, error) {
	decision := access.DeviceDecision{Preset: model.Preset(req.form("preset")), AllowDangerous: req.checked("allow_dangerous")}
	// Ignore a box that was ticked and then hidden by choosing a smaller
	// preset.
	decision.AllowDangerous = decision.AllowDangerous && decision.Preset == model.PresetFullAccess
	var err error
	if decision.ExpiresIn, err = parseLife(req.form("expires")); err != nil {
		return answer{}, err
	}
	d, err := req.engine.Access.DeviceApprove(req.call, req.person, req.form("user_code"), decision)
	if err != nil {
		return answer{}, err
	}
	data := deviceData{Device: &d, Approved: true, Chosen: decision.Preset}
	return answer{page: "device_done.html", title: "Access approved", data: data}, nil
}

func (req *request) deviceDeny() (answer, error) {
	d, err := req.engine.Access.DeviceDeny(req.call, req.person, req.form("user_code"))
	return answer{page: "device_done.html", title: "Access denied", data: deviceData{Device: &d}}, err
}

// deviceAgain shows the page with the error in the decision. It does not look up
// an unknown or expired code again: that would count as a second wrong one.
func (req *request) deviceAgain(err error) (answer, error) {
	code := req.form("user_code")
	if model.CodeOf(err) != model.CodeValidation && model.CodeOf(err) != model.CodeForbidden {
		return answer{page: "device.html", title: "Connect a tool", data: deviceData{Code: printable(code, 40)}}, err
	}
	a, reviewErr := req.review(code)
	if reviewErr != nil {
		return a, reviewErr
	}
	return a, err
}

// keyLife is a lifetime that the form offers for a key.
type keyLife struct {
	Value string
	Name  string
	life  time.Duration
}

const (
	day         = 24 * time.Hour
	defaultLife = "90d"
)

func keyLives() []keyLife {
	return []keyLife{
		{"1h", "1 hour", time.Hour},
		{"1d", "1 day", day},
		{"7d", "7 days", 7 * day},
		{"30d", "30 days", 30 * day},
		{"90d", "90 days", 90 * day},
		{"365d", "1 year", 365 * day},
		{"never", "Until it is revoked", 0},
	}
}

func parseLife(value string) (time.Duration, error) {
	for _, l := range keyLives() {
		if l.Value == value {
			return l.life, nil
		}
	}
	return 0, model.Invalid("expires", "must be one of the times the form offers")
}
