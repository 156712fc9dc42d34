package access

import (
	"errors"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// DeviceToken is what an approved device receives.
type DeviceToken struct {
	APIKey       model.Secret // the only copy
	Key          model.Key
	Organization model.Organization
	Projects     []model.Project
}

// DeviceToken answers a poll (RFC 8628, section 3.4). The first poll after the approval
// mints the key, in the transaction that consumes the approval: exactly one poll gets
// it, and its text is not stored.
func (s *Service) DeviceToken(call *model.Call, code model.Secret) (DeviceToken, error) {
	var token DeviceToken
	var answer error
	err := s.core.Meta.Update(func(tx *meta.Tx) error {
		token, answer = DeviceToken{}, nil
		d, err := s.pollDevice(tx, call, code)
		if err == nil { // another appliance may be in charge since the approval
			err = s.core.ReadOnly()
		}
		if err != nil {
			answer = err
			return internalOnly(err)
		}
		token, err = s.deliverKey(tx, call, d)
		answer = err
		return internalOnly(err)
	})
	if err == nil {
		err = answer
	}
	if err != nil {
		return DeviceToken{}, core.ExplainDiskFull(err)
	}
	if token.Projects, err = s.Projects(call); err != nil { // not in the transaction, which others wait for
		s.core.Log.Error("a device gets its key without the list of projects", "error", err)
	}
	return token, nil // the key is delivered only once, so it goes out without the list too
}

// internalOnly lets a transaction commit although its outcome is an error for the
// client: a poll that came too soon must be recorded.
func internalOnly(err error) error {
	if model.CodeOf(err) == model.CodeInternal {
		return err
	}
	return nil
}

// pollDevice records the poll and returns the authorization if it is approved; any
// other state is an error.
func (s *Service) pollDevice(tx *meta.Tx, call *model.Call, code model.Secret) (model.DeviceAuthorization, error) {
	now := s.core.Clock()
	d, err := tx.Devices().Find(meta.ByHash, hashDeviceCode(code))
	if errors.Is(err, meta.ErrNotFound) || err == nil && (!now.Before(d.ExpiresAt) || d.Status == model.DeviceDelivered) {
		return d, model.Errorf(model.CodeExpiredToken, "this device code is unknown, used or has expired; begin another device login")
	}
	if err != nil {
		return d, err
	}
	call.Resource = deviceResource(d)
	switch d.Status {
	case model.DeviceApproved:
		return d, nil
	case model.DeviceDenied:
		return d, model.Errorf(model.CodeAccessDenied, "the person who was asked has denied this")
	}
	tooSoon := false
	if d, err = tx.Devices().Update(d.ID, func(d *model.DeviceAuthorization) error {
		tooSoon = d.Poll(now)
		return nil
	}); err != nil {
		return d, err
	}
	if tooSoon {
		return d, model.Errorf(model.CodeSlowDown, "polled too soon: from now on wait %d seconds between two polls", d.Interval)
	}
	return d, model.Errorf(model.CodeAuthorizationPending, "nobody has approved this yet; poll again in %d seconds", d.Interval)
}

// deliverKey mints the granted key and consumes the grant. The grant is void if its
// maker has since lost the account or the required role.
func (s *Service) deliverKey(tx *meta.Tx, call *model.Call, d model.DeviceAuthorization) (DeviceToken, error) {
	grant := *d.Grant
	by, err := userOf(tx, grant.Organization, grant.By.ID)
	if model.CodeOf(err) == model.CodeNotFound || err == nil && !by.Role.MayGrant(grant.Preset) {
		return DeviceToken{}, model.Errorf(model.CodeAccessDenied, "the person who approved this may not any more")
	}
	if err != nil {
		return DeviceToken{}, err
	}
	call.Organization, call.Actor = grant.Organization, grant.By
	secret, key := s.mintKey(call, NewKey{
		Name: deviceKeyName(d), Preset: grant.Preset, AllowDangerous: grant.AllowDangerous, Source: model.KeySourceDevice,
	})
	key.ExpiresAt = grant.KeyExpiresAt
	call.Note("device_authorization", d.ID)
	call.Note("preset", string(key.Preset))
	if err := s.insertKey(tx, key); err != nil {
		return DeviceToken{}, err
	}
	call.Actor = model.Actor{Type: model.ActorKey, ID: key.ID, Name: key.Name}
	call.Resource = model.Resource{Type: model.ResourceKey, ID: key.ID, Name: key.Name}
	if err := tx.Devices().Change(d.ID, func(d *model.DeviceAuthorization) { d.Status = model.DeviceDelivered }); err != nil {
		return DeviceToken{}, err
	}
	token := DeviceToken{APIKey: secret, Key: key}
	if token.Organization, err = tx.Organizations().Get(grant.Organization); err != nil {
		return token, err
	}
	return token, s.core.Audit(tx, call, nil)
}

// deviceKeyName names the key after its client.
func deviceKeyName(d model.DeviceAuthorization) string {
	if d.ClientName == "" {
		return "device login"
	}
	return d.ClientName
}
