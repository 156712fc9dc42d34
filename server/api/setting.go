package api

import (
	"context"

	"holdfast/engine/databases"
	"holdfast/engine/model"
	"holdfast/server/api/wire"
)

// NewSetting returns the wire form of a setting.
func NewSetting(s databases.SettingView) wire.Setting {
	return wire.Setting{
		Name: s.Name, Area: s.Area, Description: s.Description, Kind: wire.SettingKind(s.Kind),
		Unit: orAbsent(s.Unit), Minimum: orAbsent(s.Min), Maximum: orAbsent(s.Max), Off: orAbsent(s.Off), Choices: append([]string{}, s.Values...),
		Default: s.Default, Value: s.Value, Source: wire.SettingSource(s.Source), NeedsRestart: s.NeedsRestart, PendingValue: orAbsent(s.Pending),
	}
}

func (h *handlers) settingsList(ctx context.Context, call *model.Call, in *DatabaseInput) (wire.SettingList, error) {
	all, err := h.engine.Databases.SettingList(ctx, call, in.ID)
	return wire.SettingList{Settings: convert(all, NewSetting)}, err
}

type updateSettingsInput struct {
	DatabaseInput
	Body wire.UpdateSettings
}

func (h *handlers) settingsUpdate(ctx context.Context, call *model.Call, in *updateSettingsInput) (wire.SettingList, error) {
	change := databases.SettingsChange{Settings: in.Body.Settings, Restart: in.Body.Restart != nil && *in.Body.Restart}
	all, err := h.engine.Databases.SettingsUpdate(ctx, call, in.ID, change)
	return wire.SettingList{Settings: convert(all, NewSetting)}, err
}
