package api

import (
	"context"
	"net/url"

	"holdfast/engine/access"
	"holdfast/engine/model"
)

// AuthorizeDevice is how a device asks to be let in.
type AuthorizeDevice struct {
	ClientName  *string      `json:"client_name" required:"false" maxLength:"128" doc:"What the person is shown; printable characters."`
	ScopePreset *ScopePreset `json:"scope_preset" required:"false" doc:"read_only when left out. The person may grant less."`
}

type deviceAuthorizeInput struct {
	Body *AuthorizeDevice
}

// DeviceCodes is a device authorization response (RFC 8628, section 3.2).
type DeviceCodes struct {
	DeviceCode              string `json:"device_code" doc:"Poll POST /device/token with it. A secret."`
	UserCode                string `json:"user_code" example:"WDJB-MJHT" doc:"Show it to the person."`
	VerificationURI         string `json:"verification_uri" doc:"Where the person enters the code."`
	VerificationURIComplete string `json:"verification_uri_complete" doc:"The same with the code in it."`
	ExpiresIn               int    `json:"expires_in" doc:"Seconds for which the codes are valid."`
	Interval                int    `json:"interval" doc:"Seconds to wait between two polls."`
}

func (h *handlers) deviceAuthorize(_ context.Context, call *model.Call, in *deviceAuthorizeInput) (DeviceCodes, error) {
	var asked access.DeviceRequest
	if in.Body != nil {
		asked = access.DeviceRequest{ClientName: text(in.Body.ClientName), Preset: model.Preset(text(in.Body.ScopePreset))}
	}
	codes, err := h.engine.Access.DeviceAuthorize(call, asked)
	if err != nil {
		return DeviceCodes{}, err
	}
	page := h.consoleURL + "/device"
	return DeviceCodes{
		DeviceCode: codes.Device.Reveal(), UserCode: codes.User,
		VerificationURI:         page,
		VerificationURIComplete: page + "?user_code=" + url.QueryEscape(codes.User),
		ExpiresIn:               int(codes.ExpiresIn.Seconds()), Interval: int(codes.Interval.Seconds()),
	}, nil
}

// PollDevice is how a device asks for its key.
type PollDevice struct {
	DeviceCode string `json:"device_code" minLength:"1" maxLength:"256"`
}

type deviceTokenInput struct {
	Body PollDevice
}

// DeviceToken is the answer to the one poll that collects the key.
type DeviceToken struct {
	APIKey       string       `json:"api_key" doc:"The key, delivered exactly once."`
	Key          Key          `json:"key"`
	Organization Organization `json:"organization"`
	Projects     []Project    `json:"projects"`
}

func (h *handlers) deviceToken(_ context.Context, call *model.Call, in *deviceTokenInput) (DeviceToken, error) {
	token, err := h.engine.Access.DeviceToken(call, model.NewSecret(in.Body.DeviceCode))
	if err != nil {
		return DeviceToken{}, err
	}
	return DeviceToken{
		APIKey: token.APIKey.Reveal(), Key: NewKey(token.Key),
		Organization: NewOrganization(token.Organization), Projects: convert(token.Projects, NewProject),
	}, nil
}
