package api

import (
	"bytes"
	"context"
	"net/http"
	"time"

	"holdfast/engine/model"
	"holdfast/server/api/wire"
)

// auditLines is the type of the responses that WriteAuditExport writes.
const auditLines = "application/x-ndjson"

func (h *handlers) auditExport(ctx context.Context, call *model.Call, in *AuditFilterInput, s *stream) error {
	call.Resource = organization(call)
	return s.exportAudit(func(use func([]model.AuditEntry) error) error {
		return h.engine.Core.AuditEach(ctx, call, in.filter(), use)
	})
}

// WriteAuditExport writes the audit entries that each passes on to w, a line of JSON each, and at last a line that says
// that they are all. If it fails and began is false, nothing was written.
func WriteAuditExport(w http.ResponseWriter, each func(use func([]model.AuditEntry) error) error) (began bool, err error) {
	s := &stream{w: w, kind: auditLines}
	defer func() { _ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) }()
	err = s.exportAudit(each)
	return s.began, err
}

func (s *stream) exportAudit(each func(use func([]model.AuditEntry) error) error) error {
	count := 0
	if err := each(func(entries []model.AuditEntry) error {
		var lines bytes.Buffer
		for _, e := range entries {
			line, err := encodeJSON(NewAuditEntry(e))
			if err != nil {
				return err
			}
			lines.Write(line)
		}
		count += len(entries)
		return s.write(lines.Bytes())
	}); err != nil {
		return err
	}
	line, err := encodeJSON(wire.AuditExportEnd{Complete: true, Entries: count})
	if err != nil {
		return err
	}
	return s.write(line)
}
