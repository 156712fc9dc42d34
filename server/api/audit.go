package api

import (
	"context"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/server/api/wire"
)

// NewActor returns the wire form of an actor.
func NewActor(a model.Actor) wire.Actor {
	return wire.Actor{Type: wire.ActorType(a.Type), ID: orAbsent(a.ID), Name: orAbsent(a.Name)}
}

// NewResource returns the wire form of a resource, or nil for none.
func NewResource(r model.Resource) *wire.Resource {
	if r.Type == model.ResourceNone {
		return nil
	}
	return &wire.Resource{Type: string(r.Type), ID: orAbsent(r.ID), Name: orAbsent(r.Name)}
}

// NewAuditEntry returns the wire form of an audit entry.
func NewAuditEntry(e model.AuditEntry) wire.AuditEntry {
	details := e.Details
	if details == nil {
		details = map[string]string{}
	}
	return wire.AuditEntry{
		ID: e.ID, At: utc(e.At), Actor: NewActor(e.Actor), Action: string(e.Action), Resource: NewResource(e.Resource),
		Outcome: wire.AuditOutcome(e.Outcome), ErrorCode: orAbsent(wire.ErrorCode(e.ErrorCode)), RequestID: orAbsent(e.RequestID),
		IP: orAbsent(e.IP), UserAgent: orAbsent(e.UserAgent), Details: details,
		PreviousHash: e.PreviousHash, Hash: e.Hash,
	}
}

// AuditFilterInput selects entries of the audit log.
type AuditFilterInput struct {
	Action    string            `query:"action" minLength:"1" maxLength:"64" example:"database.create" doc:"Only this action."`
	Actor     string            `query:"actor" minLength:"1" maxLength:"64" doc:"Only this actor: the id of a key or person, or a type of actor."`
	Resource  string            `query:"resource" minLength:"1" maxLength:"64" doc:"Only what was about the resource with this id."`
	Outcome   wire.AuditOutcome `query:"outcome" doc:"Only what ended like this."`
	RequestID string            `query:"request_id" minLength:"1" maxLength:"64" doc:"Only what was done for the request with this id: every response has one."`
	IP        string            `query:"ip" minLength:"1" maxLength:"64" example:"203.0.113.9" doc:"Only what came from this address."`
	Since     time.Time         `query:"since" doc:"Only from this time on."`
	Until     time.Time         `query:"until" doc:"Only before this time."`
}

// Resolve implements huma.Resolver. It rejects an end that is not after the beginning, so a given end is never the
// zero time, which means no end.
func (in *AuditFilterInput) Resolve(ctx huma.Context) []error {
	if _, err := time.Parse(time.RFC3339Nano, ctx.Query("until")); err == nil && !in.Until.After(in.Since) { // else huma says what a time is
		return []error{model.Invalid("until", "must be after since")}
	}
	return nil
}

func (in *AuditFilterInput) filter() core.AuditFilter {
	return core.AuditFilter{
		Action: in.Action, Actor: in.Actor, Resource: in.Resource, Outcome: string(in.Outcome), RequestID: in.RequestID, IP: in.IP, Since: in.Since, Until: in.Until,
	}
}

type auditInput struct {
	Limit int `query:"limit" minimum:"1" maximum:"100" default:"50" doc:"How many at most."`
	Page  int `query:"page" minimum:"1" maximum:"1000000000" default:"1" doc:"Which page, from 1."`
	AuditFilterInput
}

func (h *handlers) auditList(_ context.Context, call *model.Call, in *auditInput) ([]wire.AuditEntry, bool, error) {
	call.Resource = organization(call)
	entries, more, err := h.engine.Core.AuditList(call, in.filter(), in.Page, in.Limit)
	return convert(entries, NewAuditEntry), more, err
}
