package access

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"math/big"
	"time"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// DeviceRequest is a tool's request without a key.
type DeviceRequest struct {
	ClientName string       // as the tool calls itself
	Preset     model.Preset // "" means read_only
}

// DeviceCodes is the response to a tool. Neither code is stored.
type DeviceCodes struct {
	Device    model.Secret // the tool polls with this one
	User      string       // and shows this one to the person
	ExpiresIn time.Duration
	Interval  time.Duration // between two polls
}

// maxPendingDevices limits the stored authorizations, because they need no key. When
// the limit is reached, a new one evicts the oldest evictedDevices of the address with
// the most, so that a flood from some addresses blocks no other address.
const (
	maxPendingDevices = 10_000
	evictedDevices    = 100
)

// DeviceAuthorize starts a device authorization (RFC 8628, section 3.1).
func (s *Service) DeviceAuthorize(call *model.Call, in DeviceRequest) (DeviceCodes, error) {
	if in.Preset == "" {
		in.Preset = model.PresetReadOnly
	}
	if _, err := model.ParsePreset("scope_preset", string(in.Preset)); err != nil {
		return DeviceCodes{}, err
	}
	if err := model.ValidateClientName("client_name", in.ClientName); err != nil {
		return DeviceCodes{}, err
	}
	now := s.core.Clock()
	code, _ := newToken()
	d := model.DeviceAuthorization{
		ID: s.core.NewID(model.ResourceDevice), DeviceHash: hashDeviceCode(code), ClientName: in.ClientName, Preset: in.Preset,
		IP: call.IP, CreatedAt: now, ExpiresAt: now.Add(model.DeviceLife),
		Interval: int(model.DeviceInterval / time.Second), Status: model.DevicePending,
	}
	call.Resource = deviceResource(d)
	call.Note("preset", string(d.Preset))
	userCode, err := s.insertDevice(call, d)
	return DeviceCodes{Device: code, User: userCode, ExpiresIn: model.DeviceLife, Interval: model.DeviceInterval}, err
}

// insertDevice gives the authorization a unique user code, commits it, and returns the
// code.
func (s *Service) insertDevice(call *model.Call, d model.DeviceAuthorization) (string, error) {
	for {
		code := newUserCode()
		d.UserHash = s.hashUserCode(code)
		err := s.core.Change(call, func(tx *meta.Tx) error {
			if tx.Devices().Count() >= maxPendingDevices {
				if err := evictDevices(tx); err != nil {
					return err
				}
			}
			return tx.Devices().Insert(d)
		})
		if !errors.Is(err, meta.ErrExists) {
			return code, err
		}
	}
}

// evictDevices removes the oldest authorizations of the address that has the most.
// Approved ones stay until they are redeemed.
func evictDevices(tx *meta.Tx) error {
	of := map[string][]model.DeviceAuthorization{} // each oldest first, as ids sort by time
	most := ""
	if err := tx.Devices().All(func(d model.DeviceAuthorization) error {
		if d.Status == model.DeviceApproved {
			return nil
		}
		visitor := model.VisitorOf(d.IP)
		of[visitor] = append(of[visitor], d)
		if len(of[visitor]) > len(of[most]) {
			most = visitor
		}
		return nil
	}); err != nil {
		return err
	}
	for _, d := range of[most][:min(len(of[most]), evictedDevices)] {
		if err := tx.Devices().Delete(d.ID); err != nil {
			return err
		}
	}
	return nil
}

func newUserCode() string {
	var digits [8]byte
	for i := range digits {
		n, err := rand.Int(rand.Reader, big.NewInt(int64(model.UserCodeDigits)))
		if err != nil { // crypto/rand does not fail
			panic(err)
		}
		digits[i] = byte(n.Int64())
	}
	return model.FormatUserCode(digits)
}

func hashDeviceCode(code model.Secret) []byte {
	sum := sha256.Sum256([]byte(code.Reveal()))
	return sum[:]
}

// hashUserCode hashes with the appliance's key: a user code has 34 bits, so all codes
// could be tried against a copy of the metadata.
func (s *Service) hashUserCode(code string) []byte {
	return s.core.Signer.Sign("device user code\n" + code)
}

func deviceResource(d model.DeviceAuthorization) model.Resource {
	return model.Resource{Type: model.ResourceDevice, ID: d.ID, Name: d.ClientName}
}
