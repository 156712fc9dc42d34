package core

import (
	"context"
	"errors"
	"net/netip"

	"holdfast/engine/model"
)

var ErrInterrupted = model.Errorf(model.CodeConflict, "the appliance was stopped before this was done")

// Background runs work until it returns; Close waits for it.
func (c *Core) Background(work func(context.Context)) {
	c.Work.Go(func() { work(c.Lifetime) })
}

// NewID returns a new id for a resource of type t. Ids sort by the time they
// were made.
func (c *Core) NewID(t model.ResourceType) string {
	return FormatID(t.Prefix(), c.IDs.Next(c.Clock()))
}

// Permit checks that the caller may do all of acts.
func Permit(call *model.Call, acts []model.Operation) error {
	for _, act := range acts {
		if call.IsPerson() {
			if err := call.Role.Allows(act); err != nil {
				return err
			}
		} else if act.Scope != "" && !call.Holds(act.Scope) {
			return model.Errorf(model.CodeInsufficientScope, "this key lacks the scope %s", act.Scope)
		}
	}
	for _, act := range acts {
		if act.Destructive && call.Key != nil && !call.Key.AllowDangerous {
			return model.Errorf(model.CodeDangerousNotAllowed,
				"this deletes data: the key's dangerous-operations toggle is off, and a person must turn it on")
		}
	}
	return nil
}

// IsLoopback reports whether an address is the machine's own. Everybody has it
// where a proxy on this machine stands in front.
func IsLoopback(ip string) bool {
	address, err := netip.ParseAddr(ip)
	return err == nil && address.Unmap().IsLoopback()
}

func OrganizationResource(o model.Organization) model.Resource {
	return model.Resource{Type: model.ResourceOrganization, ID: o.ID, Name: o.Name}
}

// ErrUnwanted ends a verification of what is about to go.
var ErrUnwanted = errors.New("the backup is being removed")

// PartOf returns a call about one of the resources that call is about, to be
// audited by itself.
func PartOf(call *model.Call, resource model.Resource) *model.Call {
	part := *call
	part.Resource, part.Details, part.Audited = resource, nil, false
	return &part
}
