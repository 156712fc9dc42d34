package web

import (
	"holdfast/engine/core"
	"holdfast/engine/model"
)

// auditData is what audit.html shows.
type auditData struct {
	core.List[model.AuditEntry]
	Filter  core.AuditQuery
	Areas   []string
	Results []model.Outcome
	Any     bool   // whether there is a filter
	Older   string // URL of the next page, "" if there is none
}

func (req *request) audit() (answer, error) {
	asked := req.r.URL.Query()
	data := auditData{
		Filter: core.AuditQuery{
			Action: asked.Get("action"), Outcome: model.Outcome(asked.Get("outcome")),
			Actor: asked.Get("actor"), Target: asked.Get("resource"),
		},
		Areas:   auditAreas(),
		Results: []model.Outcome{model.OutcomeSuccess, model.OutcomeDenied, model.OutcomeError},
	}
	data.Any = data.Filter != core.AuditQuery{}
	var err error
	data.List, err = req.engine.Core.AuditSearch(req.call, data.Filter, req.page())
	if data.Next != "" {
		asked.Set("cursor", data.Next)
		data.Older = "/audit?" + asked.Encode()
	}
	return answer{page: "audit.html", title: "Audit log", data: data}, err
}

// auditAreas returns the action prefixes that the page can filter by.
func auditAreas() []string {
	return []string{
		"database", "backup", "recovery", "bucket", "object", "key", "device", "session", "user", "setup_link",
		"project", "organization", "account", "agent", "audit", "import", "export", "upload", "operation", "instance", "wal",
		"certificate", "trash", "settings", "metadata", "appliance",
	}
}
