package api

import (
	"context"

	"holdfast/engine/databases"
	"holdfast/engine/model"
	"holdfast/server/api/wire"
)

// NewExtension returns the wire form of an extension.
func NewExtension(x databases.ExtensionView) wire.Extension {
	view := wire.Extension{
		Name: x.Name, Class: wire.ExtensionClass(x.Class), Schema: x.Schema, Requires: append([]string{}, x.Requires...),
		AvailableVersion: orAbsent(x.Available), InstalledVersion: orAbsent(x.Installed), UpdateVersion: orAbsent(x.Update()),
		Owner: orAbsent(x.Owner), NeedsRestart: x.NeedsRestart, Dumps: orAbsent(x.Dump), Notes: x.Notes, Unavailable: orAbsent(x.Reason), Tables: append([]string{}, x.Tables...),
	}
	if view.Schema == "" {
		view.Schema = x.InSchema()
	}
	return view
}

func (h *handlers) extensionList(ctx context.Context, call *model.Call, in *DatabaseInput) (wire.ExtensionList, error) {
	all, err := h.engine.Databases.ExtensionList(ctx, call, in.ID)
	return wire.ExtensionList{Extensions: convert(all, NewExtension)}, err
}

type setExtensionInput struct {
	DatabaseInput
	Body wire.SetExtension
}

func (h *handlers) extensionSet(ctx context.Context, call *model.Call, in *setExtensionInput) (wire.Extension, error) {
	change := databases.ExtensionChange{Name: in.Body.Name, Restart: in.Body.Restart != nil && *in.Body.Restart}
	x, err := h.engine.Databases.ExtensionSet(ctx, call, in.ID, change)
	return NewExtension(x), err
}

type deleteExtensionInput struct {
	DatabaseInput
	Name string `path:"name" maxLength:"63" doc:"Name of the extension." example:"vector"`
}

func (h *handlers) extensionDelete(ctx context.Context, call *model.Call, in *deleteExtensionInput) (wire.DeletedExtension, error) {
	err := h.engine.Databases.ExtensionDelete(ctx, call, in.ID, in.Name)
	return wire.DeletedExtension{Name: in.Name, Deleted: true}, err
}
