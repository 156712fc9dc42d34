package core

import (
	"errors"
	"slices"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// ByLink marks a call that is signed by a link, a presigned URL or an HTML form, which its audit entry says, and draws on
// the budget of its address. It runs before the signature is verified.
func (c *Core) ByLink(call *model.Call) error {
	call.Linked = true
	call.Note("link", "true")
	class := rateDownload
	if call.Operation.Changes() {
		class = ratePageUpload
	}
	return c.throttlePage(call.IP, class)
}

// ActFor makes the maker of a link, a key or a person of the organization, the caller. A link ends with its maker: it
// returns an error once the key is revoked or expired, or the person is gone.
func (c *Core) ActFor(call *model.Call, organization, maker string) error {
	ended := model.Errorf(model.CodeForbidden, "the link is no longer valid: who made it may no longer do this")
	if model.ResourceKey.HasPrefix(maker) {
		key, err := c.Meta.CachedKeyByID(maker)
		if errors.Is(err, meta.ErrNotFound) || err == nil && (key.Organization != organization || !key.Usable(c.Clock())) {
			return ended
		}
		call.Organization, call.Key = organization, &key
		call.Actor = model.Actor{Type: model.ActorKey, ID: key.ID, Name: key.Name}
		return err
	}
	user, err := meta.Value(c.Meta.View, func(tx *meta.Tx) (model.User, error) { return tx.Users().Get(maker) })
	if errors.Is(err, meta.ErrNotFound) || err == nil && (user.Organization != organization || !slices.Contains(model.Roles(), user.Role)) {
		return ended
	}
	call.Organization, call.Role = organization, user.Role
	call.Actor = model.Actor{Type: model.ActorUser, ID: user.ID, Name: user.Email}
	return err
}
