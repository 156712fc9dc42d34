package api

import (
	"context"

	"holdfast/engine/model"
)

// The operations here are the specification's, and not yet this version's.
// They pass the same gate, check the same form, know the same resources, and
// say truthfully that they cannot.

// Never is the answer there is not yet.
type Never struct{}

func absent(message string) error { return model.Errorf(model.CodeForbidden, "%s", message) }

const noDeviceLogin = "device login is not part of this version; the operator makes keys with `holdfast admin key create`"

// AuthorizeDevice is how a device asks to be let in.
type AuthorizeDevice struct {
	ClientName  *string `json:"client_name" required:"false" maxLength:"128"`
	ScopePreset *string `json:"scope_preset" required:"false" enum:"read_only,developer,full_access"`
}

type deviceAuthorizeInput struct {
	Body *AuthorizeDevice
}

func (h *handlers) deviceAuthorize(context.Context, *model.Call, *deviceAuthorizeInput) (Never, error) {
	return Never{}, absent(noDeviceLogin)
}

// PollDevice is how a device asks for its key.
type PollDevice struct {
	DeviceCode string `json:"device_code" minLength:"1" maxLength:"256"`
}

type deviceTokenInput struct {
	Body PollDevice
}

func (h *handlers) deviceToken(context.Context, *model.Call, *deviceTokenInput) (Never, error) {
	return Never{}, absent(noDeviceLogin)
}
