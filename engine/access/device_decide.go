package access

import (
	"errors"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// DeviceDecision is what a person grants to a device.
type DeviceDecision struct {
	Preset         model.Preset
	AllowDangerous bool          // with full_access only
	ExpiresIn      time.Duration // of the key, 0 means never
}

// DeviceReview returns the pending authorization of a user code, typed in any form.
// Wrong codes are counted and lock the person's page for a minute, so that guessing
// does not find other people's authorizations. A person has one budget of codes for
// all sessions.
func (s *Service) DeviceReview(call *model.Call, p Person, typed string) (model.DeviceAuthorization, error) {
	var d model.DeviceAuthorization
	if err := s.core.Throttle(p.User.ID, core.RateUserCode); err != nil {
		return d, err
	}
	var answer error
	err := s.core.Meta.Update(func(tx *meta.Tx) error {
		d, answer = s.waitingDevice(tx, call, p, typed)
		return internalOnly(answer)
	})
	if err == nil {
		err = answer
	}
	return d, err
}

// waitingDevice finds the authorization, or counts a wrong code.
func (s *Service) waitingDevice(tx *meta.Tx, call *model.Call, p Person, typed string) (model.DeviceAuthorization, error) {
	var d model.DeviceAuthorization
	now := s.core.Clock()
	session, err := tx.Sessions().Get(p.Session.TokenHash)
	if errors.Is(err, meta.ErrNotFound) {
		return d, notSignedIn()
	}
	if err != nil {
		return d, err
	}
	if session.Locked(now) {
		return d, codesLocked(session, now)
	}
	d, err = s.deviceByCode(tx, typed, now)
	if err != nil && model.CodeOf(err) != model.CodeNotFound {
		return d, err
	}
	wrong := err != nil
	if wrong || session.WrongCodes > 0 {
		if session, err = tx.Sessions().Update(session.TokenHash, func(it *model.Session) error {
			if wrong {
				it.WrongCode(now)
			} else {
				it.WrongCodes = 0
			}
			return nil
		}); err != nil {
			return d, err
		}
	}
	if session.Locked(now) {
		return d, codesLocked(session, now)
	}
	if wrong {
		return d, noSuchCode()
	}
	call.Resource = deviceResource(d)
	return d, nil
}

func (s *Service) deviceByCode(tx *meta.Tx, typed string, now time.Time) (model.DeviceAuthorization, error) {
	code := model.NormalizeUserCode(typed)
	if code == "" {
		return model.DeviceAuthorization{}, noSuchCode()
	}
	d, err := tx.Devices().Find(meta.ByUserCode, s.hashUserCode(code))
	if errors.Is(err, meta.ErrNotFound) || err == nil && (d.Status != model.DevicePending || !now.Before(d.ExpiresAt)) {
		return d, noSuchCode()
	}
	return d, err
}

func noSuchCode() error {
	return model.Errorf(model.CodeNotFound, "no tool waits under this code: it may be mistyped, used or older than %.0f minutes", model.DeviceLife.Minutes())
}

func codesLocked(s model.Session, now time.Time) error {
	wait := s.LockedUntil.Sub(now)
	return &model.Error{
		Code: model.CodeRateLimited, RetryAfter: wait,
		Message: "too many wrong codes; this page takes no code for a minute",
	}
}

// DeviceApprove grants a key to the device with a pending user code.
func (s *Service) DeviceApprove(call *model.Call, p Person, typed string, in DeviceDecision) (model.DeviceAuthorization, error) {
	return s.decideDevice(call, p, typed, func(d *model.DeviceAuthorization) error {
		if err := in.check(call, *d); err != nil {
			return err
		}
		now := s.core.Clock()
		d.Status = model.DeviceApproved
		d.Grant = &model.DeviceGrant{
			Organization: call.Organization, Preset: in.Preset, AllowDangerous: in.AllowDangerous, By: call.Actor,
		}
		if in.ExpiresIn > 0 {
			expires := now.Add(in.ExpiresIn)
			d.Grant.KeyExpiresAt = &expires
		}
		call.Note("preset", string(in.Preset))
		return nil
	})
}

// check allows at most what the device requested and the person has.
func (in DeviceDecision) check(call *model.Call, d model.DeviceAuthorization) error {
	asked, err := model.ParsePreset("preset", string(in.Preset))
	if err != nil {
		return err
	}
	if !d.Preset.Includes(asked) {
		return model.Invalid("preset", "the tool asked for %s; it can be given that or less", d.Preset)
	}
	if !call.Role.MayGrant(asked) {
		return model.Errorf(model.CodeForbidden, "you are signed in as %s and may approve read_only alone", call.Role)
	}
	if in.AllowDangerous && asked != model.PresetFullAccess {
		return model.Invalid("allow_dangerous", "goes with full_access only: nothing less can delete")
	}
	return nil
}

// DeviceDeny denies the device's request.
func (s *Service) DeviceDeny(call *model.Call, p Person, typed string) (model.DeviceAuthorization, error) {
	return s.decideDevice(call, p, typed, func(d *model.DeviceAuthorization) error {
		d.Status = model.DeviceDenied
		return nil
	})
}

// decideDevice commits the decision on an authorization. Only the first decision
// counts.
func (s *Service) decideDevice(
	call *model.Call, p Person, typed string, decide func(*model.DeviceAuthorization) error,
) (model.DeviceAuthorization, error) {
	found, err := s.DeviceReview(call, p, typed)
	if err != nil {
		return found, err
	}
	var d model.DeviceAuthorization
	err = s.core.ChangeAuthority(call, func(tx *meta.Tx) error {
		if d, err = s.deviceByCode(tx, typed, s.core.Clock()); err != nil {
			return err
		}
		d, err = tx.Devices().Update(d.ID, decide)
		return err
	})
	return d, err
}
