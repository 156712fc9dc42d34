package web

import (
	"strings"

	"holdfast/engine/insight"
	"holdfast/engine/model"
	"holdfast/engine/password"
)

// settingsData is what settings.html shows.
type settingsData struct {
	Sessions []model.Session
	Current  string // the hash of this session's token
	Least    int    // minimum length of a password
	Usage    insight.Usage
	Server   insight.Server
	API      string
}

// Metrics formats the usage and limit of each metric.
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

func (req *request) settings(cause error) (answer, error) {
	a := answer{page: "settings.html", title: "Settings"}
	sessions, err := req.engine.Access.Sessions(req.person)
	if err != nil {
		return answer{}, err
	}
	usage, err := req.engine.Insight.Usage(req.call)
	if err != nil {
		return answer{}, err
	}
	a.data = settingsData{
		Sessions: sessions, Current: req.person.Session.TokenHash, Least: password.Min,
		Usage: usage, Server: req.engine.Insight.Server(), API: req.opts.BaseURL + "/v1",
	}
	return a, cause
}

func (req *request) password() (answer, error) {
	err := req.engine.Access.UserPassword(req.call, req.person,
		model.NewSecret(req.form("current_password")), model.NewSecret(req.form("new_password")))
	return done("/settings", "password"), err
}
