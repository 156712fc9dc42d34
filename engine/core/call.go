package core

import (
	"context"
	"errors"
	"net/netip"

	"holdfast/engine/model"
)

var ErrInterrupted = model.Errorf(model.CodeConflict, "the appliance was stopped before this was done")

// Background runs work in a goroutine; Close waits for it.
func (c *Core) Background(work func(context.Context)) {
	c.Work.Go(func() { work(c.Lifetime) })
}

// NewID returns a new id for a resource of type t. Ids sort by creation time.
func (c *Core) NewID(t model.ResourceType) string {
	return FormatID(t.Prefix(), c.IDs.Next(c.Clock()))
}

// Permit checks that the caller may perform all of acts.
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

// IsLoopback reports whether ip is a loopback address. Behind a proxy on this
// machine, every client has one.
func IsLoopback(ip string) bool {
	address, err := netip.ParseAddr(ip)
	return err == nil && address.Unmap().IsLoopback()
}

func OrganizationResource(o model.Organization) model.Resource {
	return model.Resource{Type: model.ResourceOrganization, ID: o.ID, Name: o.Name}
}

// ErrUnwanted ends the verification of a backup that is about to be removed.
var ErrUnwanted = errors.New("the backup is being removed")

// PartOf returns a call about one of the resources of call, to be audited
// separately.
func PartOf(call *model.Call, resource model.Resource) *model.Call {
	part := *call
	part.Resource, part.Details, part.Audited = resource, nil, false
	return &part
}
