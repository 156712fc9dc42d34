package core

import (
	"fmt"
	"strconv"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// AuditQuery selects audit entries in a search by a person.
type AuditQuery = meta.AuditQuery

// AuditSearch returns a page of the call's organization's audit entries that match
// query, newest first. A page may have fewer entries than its limit and still a next
// page, because the length of one search is bounded.
func (c *Core) AuditSearch(call *model.Call, query AuditQuery, page Page) (List[model.AuditEntry], error) {
	w, err := c.Walk(call, model.ActionAuditList, page, fmt.Sprintf("%q", query))
	if err != nil {
		return List[model.AuditEntry]{}, err
	}
	var before uint64
	if w.After != "" {
		if before, err = strconv.ParseUint(w.After, 10, 64); err != nil {
			return List[model.AuditEntry]{}, err
		}
	}
	call.Resource = model.Resource{Type: model.ResourceOrganization, ID: call.Organization}
	var list List[model.AuditEntry]
	err = c.Meta.ViewFlushed(func(tx *meta.Tx) error {
		entries, next, err := tx.SearchAudit(call.Organization, query, before, w.Limit)
		list = List[model.AuditEntry]{Items: entries}
		if next > 0 {
			list.Next = w.CursorAt(strconv.FormatUint(next, 10))
		}
		return err
	})
	return list, err
}
