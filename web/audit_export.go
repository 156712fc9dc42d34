package web

import (
	"net/http"

	"holdfast/engine/core"
	"holdfast/engine/model"
)

// auditExport downloads what the page of the audit log lists, however much it is, as lines of JSON.
func (req *request) auditExport() (answer, error) {
	release, err := req.engine.Core.Watchers.Watch(req.call)
	if err != nil {
		return answer{}, err
	}
	defer release()
	req.call.Resource = model.Resource{Type: model.ResourceOrganization, ID: req.call.Organization}
	req.w.Header().Set("Content-Disposition", `attachment; filename="audit-log.ndjson"`)
	began, err := req.opts.WriteAuditExport(req.w, func(use func([]model.AuditEntry) error) error {
		asked, ctx := req.auditAsked(), req.r.Context()
		if asked.Request != "" {
			return req.engine.Core.AuditEach(ctx, req.call, core.AuditFilter{RequestID: asked.Request}, use)
		}
		return req.engine.Core.AuditEachFound(ctx, req.call, asked.Filter, use)
	})
	if err == nil {
		return answer{}, nil
	}
	if !began {
		req.w.Header().Del("Content-Disposition")
		return answer{}, err
	}
	req.engine.Core.Finish(req.call, err)
	req.opts.Log.Warn("an export of the audit log was cut off", "request_id", req.call.RequestID, "error", err)
	panic(http.ErrAbortHandler) // cuts the download off, so that no browser takes it for complete
}
