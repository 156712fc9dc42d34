package databases

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
	"holdfast/engine/postgres/parameters"
)

// SettingSource says where the value of a setting comes from.
type SettingSource string

// The sources. The operator's precede the database's.
const (
	SettingDefault  SettingSource = "default"  // PostgreSQL's, or fitted to the machine
	SettingDatabase SettingSource = "database" // changed for this database
	SettingOperator SettingSource = "operator" // fixed by the operator
)

// SettingView is a setting that a client may see and, unless the operator has fixed
// it, change.
type SettingView struct {
	parameters.Parameter
	Description string
	// Value is in force for new sessions, Default what a reset restores. Own is what
	// the database has of its own, "" if nothing.
	Value, Default, Own string
	Source              SettingSource
	// NeedsRestart means that only a restart changes it. Pending is what the next one
	// brings, "" if that is Value.
	NeedsRestart bool
	Pending      string
}

// SettingsChange changes settings; a nil value restores the default.
type SettingsChange struct {
	Settings map[string]*string
	// Restart allows a restart if a setting needs one; without it such a setting
	// waits for the next.
	Restart bool
}

// SettingList returns the settings of a database that its clients may change.
func (s *Service) SettingList(ctx context.Context, call *model.Call, id string) (all []SettingView, err error) {
	db, err := s.Database(call, id)
	if err != nil {
		return nil, err
	}
	err = s.awake(db, func() (err error) {
		all, err = s.settingViews(ctx, db)
		return err
	})
	return all, err
}

// SettingsUpdate changes settings of a database. Those that need no restart are in
// force for every session when it returns, except where a session, a role or the
// owner's own ALTER DATABASE says otherwise.
func (s *Service) SettingsUpdate(ctx context.Context, call *model.Call, id string, in SettingsChange) ([]SettingView, error) {
	change, err := s.normalized(in.Settings)
	if err != nil {
		return nil, err
	}
	const what = "a change of settings"
	claim := s.claimAvailable
	if in.Restart {
		claim = s.claimForRestart
	}
	db, release, err := claim(call, id, what)
	if err != nil {
		return nil, err
	}
	defer release()
	if db.Sandbox {
		return nil, model.Errorf(model.CodeConflict, "%s is a sandbox, which lasts only as long as its command runs: it cannot be changed", db.Name)
	}
	if err := cmp.Or(call.Match(db.SettingsTag()), refuseFixed(db, change)); err != nil {
		return nil, err
	}
	ctx = context.WithoutCancel(ctx)
	call.Note("settings", noted(change))
	next, err := s.beginChange(call, id, func(d *model.Database) {
		d.OwnSettings, d.UpdatedAt = mergeSettings(db.OwnSettings, change), s.core.Clock()
	})
	if err != nil {
		return nil, err
	}
	if err := s.tuneOrRestart(ctx, call, next, in.Restart); err != nil {
		reverted, undoErr := s.revertChange(id, func(d *model.Database) { d.OwnSettings, d.UpdatedAt = db.OwnSettings, db.UpdatedAt })
		if undoErr == nil {
			undoErr = s.restoreSettings(ctx, reverted)
		}
		return nil, errors.Join(refusedSettings(err), undoErr)
	}
	if db, err = s.concludeChange(call, id); err != nil {
		return nil, err
	}
	return s.settingViews(ctx, db)
}

// claimForRestart claims an available database and its backups.
func (s *Service) claimForRestart(call *model.Call, id, what string) (model.Database, func(), error) {
	db, release, err := s.claimAvailable(call, id, what)
	if err != nil {
		return db, nil, err
	}
	releaseBackups, err := s.claimBackupsFor(call, id, what)
	if err != nil {
		release()
		return db, nil, err
	}
	return db, func() { releaseBackups(); release() }, nil
}

// normalized checks the names and values of a change; "" resets a setting.
func (s *Service) normalized(settings map[string]*string) (map[string]string, error) {
	if len(settings) == 0 {
		return nil, model.Invalid("settings", "must have at least one setting, such as work_mem")
	}
	change, memory := map[string]string{}, machineMemory(s.core.Config.DataDir)
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		p, known := parameters.Find(name)
		if !known {
			return nil, model.Invalid("settings", "%q is not one of the settings that can be changed: the list of the database's settings has them", name)
		}
		value := settings[name]
		if value == nil {
			change[name] = ""
			continue
		}
		text, err := p.Normalize("settings."+name, *value, memory)
		if err != nil {
			return nil, err
		}
		change[name] = text
	}
	return change, nil
}

// machineMemory returns the machine's memory in bytes, 0 if it is not known.
func machineMemory(dir string) int64 {
	host, err := core.MeasureHost(dir)
	if err != nil || host.MemoryTotal == nil {
		return 0
	}
	return *host.MemoryTotal
}

func refuseFixed(db model.Database, change map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(change)) {
		if value, fixed := db.Settings[name]; fixed {
			return model.Errorf(model.CodeForbidden, "settings.%s: the operator has fixed it at %s", name, value)
		}
	}
	return nil
}

// noted writes a change for the audit log.
func noted(change map[string]string) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(change)) {
		all = append(all, name+"="+orDefault(change[name]))
	}
	return strings.Join(all, ", ")
}

// tuneOrRestart brings the record's settings into force, those that need a restart
// only if it is allowed.
func (s *Service) tuneOrRestart(ctx context.Context, call *model.Call, db model.Database, restart bool) error {
	if err := s.tune(ctx, db); err != nil || !restart {
		return err
	}
	views, err := s.settingViews(ctx, db)
	if err != nil || !slices.ContainsFunc(views, func(v SettingView) bool { return v.Pending != "" }) {
		return err
	}
	call.Note("restarted", "true")
	return s.applySettings(ctx, db)
}

// tune brings the record's settings into force without a restart. What was fitted to
// the machine stays as the server has it.
func (s *Service) tune(ctx context.Context, db model.Database) error {
	ctx, cancel := context.WithTimeout(ctx, s.Timeouts.Start)
	defer cancel()
	spec, err := s.Spec(ctx, db)
	if err != nil {
		return err
	}
	keepDefaults(spec.Config.Settings, db, spec.Dir)
	return s.Instances.Tune(ctx, db.ID, func(c *postgres.Config) { c.Settings = spec.Config.Settings })
}

// restoreSettings brings back the settings of a record whose change was reverted.
func (s *Service) restoreSettings(ctx context.Context, db model.Database) error {
	if err := s.tune(ctx, db); err != nil {
		return s.applySettings(ctx, db)
	}
	if state, _, _ := s.Instances.Status(db.ID); state != postgres.StateRunning { // it did not restart with the others
		return s.applySettings(ctx, db)
	}
	return nil
}

// refusedSettings returns the error for a client whose settings are not in force.
func refusedSettings(err error) error {
	if errors.Is(err, postgres.ErrRefusedSettings) {
		_, why, _ := strings.Cut(err.Error(), postgres.ErrRefusedSettings.Error()+": ")
		return &model.Error{Code: model.CodeValidation, Message: "settings: PostgreSQL refuses " + why + "; nothing was changed", Err: err}
	}
	return ServerFailed(err)
}

// settingViews asks the server of a database about its settings.
func (s *Service) settingViews(ctx context.Context, db model.Database) ([]SettingView, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Timeouts.Start)
	defer cancel()
	var live map[string]postgres.LiveSetting
	catalogue := parameters.Catalogue()
	names := make([]string, len(catalogue))
	for i, p := range catalogue {
		names[i] = p.Name
	}
	err := s.maintain(ctx, db.ID, func(ctx context.Context, conn *pgx.Conn) (err error) {
		live, err = postgres.LiveSettings(ctx, conn, names)
		return err
	})
	if err != nil {
		return nil, ServerFailed(err)
	}
	recorded, err := s.confValues(ctx, db)
	if err != nil {
		return nil, err
	}
	without := db
	without.Settings, without.OwnSettings = nil, nil
	defaults, err := s.confValues(ctx, without)
	if err != nil {
		return nil, err
	}
	memory := machineMemory(s.core.Config.DataDir)
	var views []SettingView
	for _, p := range catalogue {
		if l, known := live[p.Name]; known {
			views = append(views, settingView(db, p, l, recorded[p.Name], defaults[p.Name], memory))
		}
	}
	return views, nil
}

// confValues returns what a start writes to the database's postgresql.conf.
func (s *Service) confValues(ctx context.Context, db model.Database) (map[string]string, error) {
	spec, err := s.Spec(ctx, db)
	if err != nil {
		return nil, err
	}
	values, err := spec.Config.Values(spec.Bin)
	if err != nil {
		return nil, fmt.Errorf("settings of %s: %w", db.ID, err)
	}
	return values, nil
}

func settingView(db model.Database, p parameters.Parameter, live postgres.LiveSetting, recorded, byDefault string, memory int64) SettingView {
	p.Max = p.Most(memory)
	v := SettingView{
		Parameter: p, Description: live.Description, Value: live.Value, NeedsRestart: live.NeedsRestart,
		Default: p.Show(cmp.Or(byDefault, live.Default)), Source: SettingDefault,
	}
	if own, is := db.OwnSettings[p.Name]; is {
		v.Source, v.Own = SettingDatabase, own
	}
	if _, fixed := db.Settings[p.Name]; fixed {
		v.Source = SettingOperator
	}
	wanted := p.Show(cmp.Or(recorded, live.Default))
	if live.Ours {
		v.Value = wanted
	}
	if v.NeedsRestart && wanted != v.Value {
		v.Pending = wanted
	}
	return v
}
