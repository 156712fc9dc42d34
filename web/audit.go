package web

import (
	"time"

	"holdfast/engine/core"
	"holdfast/engine/model"
)

// auditData is what audit.html shows.
type auditData struct {
	core.List[model.AuditEntry]
	Filter  core.AuditQuery
	Request string // id of the one request to show, "" for a search by Filter
	Areas   []string
	Results []model.Outcome
	Any     bool   // whether there is a filter
	Older   string // URL of the next page, "" if there is none
	Export  string // URL of all entries as a file
}

// auditAsked returns the filter that the URL names.
func (req *request) auditAsked() auditData {
	asked := req.r.URL.Query()
	return auditData{
		Filter: core.AuditQuery{
			Action: asked.Get("action"), Outcome: model.Outcome(asked.Get("outcome")),
			Actor: asked.Get("actor"), Target: asked.Get("resource"), IP: asked.Get("ip"),
			Since: dateIn(asked.Get("since")), Until: dateIn(asked.Get("until")),
		},
		Request: asked.Get("request_id"),
	}
}

func (req *request) audit() (answer, error) {
	asked := req.r.URL.Query()
	data := req.auditAsked()
	data.Areas = auditAreas()
	data.Results = []model.Outcome{model.OutcomeSuccess, model.OutcomeDenied, model.OutcomeError}
	data.Any = data.Filter != core.AuditQuery{} || data.Request != ""
	asked.Del("cursor")
	data.Export = "/audit/export?" + asked.Encode()
	var err error
	if data.Request != "" {
		data.Items, _, err = req.engine.Core.AuditList(req.call, core.AuditFilter{RequestID: data.Request}, 1, 0)
		return answer{page: "audit.html", title: "Audit log", data: data}, err
	}
	data.List, err = req.engine.Core.AuditSearch(req.call, data.Filter, req.page())
	if data.Next != "" {
		asked.Set("cursor", data.Next)
		data.Older = "/audit?" + asked.Encode()
	}
	return answer{page: "audit.html", title: "Audit log", data: data}, err
}

// dateIn parses a date field: midnight in UTC, zero if it is empty or no date.
func dateIn(text string) time.Time {
	at, _ := time.Parse(time.DateOnly, text)
	return at
}

// auditAreas returns the action prefixes that the page can filter by.
func auditAreas() []string {
	return []string{
		"database", "branch", "backup", "recovery", "bucket", "object", "key", "device", "session", "user",
		"project", "organization", "account", "agent", "audit", "import", "export", "upload", "operation", "webhook", "event", "instance", "wal",
		"certificate", "trash", "metadata", "appliance",
	}
}
