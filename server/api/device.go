package api

import (
	"context"
	"net/url"

	"holdfast/engine/access"
	"holdfast/engine/model"
	"holdfast/server/api/wire"
)

type deviceAuthorizeInput struct {
	Body *wire.AuthorizeDevice
}

func (h *handlers) deviceAuthorize(_ context.Context, call *model.Call, in *deviceAuthorizeInput) (wire.DeviceCodes, error) {
	var asked access.DeviceRequest
	if in.Body != nil {
		asked = access.DeviceRequest{ClientName: text(in.Body.ClientName), Preset: model.Preset(text(in.Body.ScopePreset))}
	}
	codes, err := h.engine.Access.DeviceAuthorize(call, asked)
	if err != nil {
		return wire.DeviceCodes{}, err
	}
	page := h.baseURL + "/device"
	return wire.DeviceCodes{
		DeviceCode: codes.Device.Reveal(), UserCode: codes.User,
		VerificationURI:         page,
		VerificationURIComplete: page + "?user_code=" + url.QueryEscape(codes.User),
		ExpiresIn:               int(codes.ExpiresIn.Seconds()), Interval: int(codes.Interval.Seconds()),
	}, nil
}

type deviceTokenInput struct {
	Body wire.PollDevice
}

func (h *handlers) deviceToken(_ context.Context, call *model.Call, in *deviceTokenInput) (wire.DeviceToken, error) {
	token, err := h.engine.Access.DeviceToken(call, model.NewSecret(in.Body.DeviceCode))
	if err != nil {
		return wire.DeviceToken{}, err
	}
	return wire.DeviceToken{
		APIKey: token.APIKey.Reveal(), Key: NewKey(token.Key),
		Organization: NewOrganization(token.Organization), Projects: convert(token.Projects, NewProject),
	}, nil
}
