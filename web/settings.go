package web

import (
	"strings"

	"holdfast/engine"
	"holdfast/engine/model"
	"holdfast/engine/password"
)

// settingsData is what settings.html shows.
type settingsData struct {
	Sessions []model.Session
	Current  string // the hash of this session's token
	Least    int    // characters of a password
	Usage    engine.Usage
	About    engine.About
	API      string
}

// Metrics writes how much of each thing is in use, and of how much.
func (d settingsData) Metrics() []fact {
	metrics := make([]fact, 0, len(model.Metrics()))
	for _, m := range model.Metrics() {
		write := thousands
		if strings.HasSuffix(string(m), "_bytes") {
			write = func(n int64) string { return formatBytes(n) }
		}
		used := write(d.Usage.Used(m))
		if limit, limited := d.Usage.Limits[m]; limited {
			used += " of " + write(limit)
		}
		metrics = append(metrics, fact{metricName(m), used})
	}
	return metrics
}

func metricName(m model.Metric) string {
	switch m {
	case model.MetricDatabaseBytes:
		return "in databases"
	case model.MetricStorageBytes:
		return "in files"
	case model.MetricBackupBytes:
		return "in backups"
	case model.MetricObjects:
		return "files"
	default:
		return string(m)
	}
}

func (v *visit) settings() (answer, error) { return v.settingsPage(nil) }

func (v *visit) settingsPage(cause error) (answer, error) {
	a := answer{page: "settings.html", title: "Settings"}
	sessions, err := v.engine.Sessions(v.person)
	if err != nil {
		return answer{}, err
	}
	usage, err := v.engine.Usage(v.call)
	if err != nil {
		return answer{}, err
	}
	a.data = settingsData{
		Sessions: sessions, Current: v.person.Session.TokenHash, Least: password.Min,
		Usage: usage, About: v.engine.About(), API: v.opts.BaseURL + "/v1",
	}
	return a, cause
}

func (v *visit) password() (answer, error) {
	err := v.engine.UserPassword(v.call, v.person,
		model.NewSecret(v.form("current_password")), model.NewSecret(v.form("new_password")))
	if err != nil {
		return v.settingsPage(err)
	}
	return done("/settings", "password"), nil
}
