package remote

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/server/api/wire"
)

func newDatabaseSettings(s *session) *cobra.Command {
	return Group("settings", "PostgreSQL's settings of a database", newSettingsList(s), newSettingsSet(s), newSettingsReset(s))
}

func newSettingsList(s *session) *cobra.Command {
	var changed bool
	cmd := s.aboutDatabase("list DATABASE", "Show the settings of a database that can be changed", cobra.ExactArgs(1),
		func(t *task, db wire.Database, _ []string) error {
			found, err := t.api.ListDatabaseSettings(t.ctx, db.ID)
			if err != nil {
				return err
			}
			rows := [][]string{}
			for _, x := range found.Settings {
				if !changed || x.Source != wire.SettingDefault || x.PendingValue != nil {
					rows = append(rows, settingRow(x))
				}
			}
			return t.table(nil, found, "no setting was changed", []string{"NAME", "VALUE", "DEFAULT", "MAY BE", "REMARK"}, rows)
		})
	cmd.Flags().BoolVar(&changed, "changed", false, "only those that differ from the default")
	return cmd
}

func settingRow(x wire.Setting) []string {
	var remarks []string
	if x.Source == wire.SettingOperator {
		remarks = append(remarks, "fixed by the operator")
	}
	if x.PendingValue != nil {
		remarks = append(remarks, *x.PendingValue+" from the next restart on")
	} else if x.NeedsRestart {
		remarks = append(remarks, "needs a restart")
	}
	return []string{x.Name, x.Value, x.Default, mayBe(x), strings.Join(remarks, "; ")}
}

// mayBe says which values a setting may have.
func mayBe(x wire.Setting) string {
	switch x.Kind {
	case wire.SettingBoolean:
		return "on, off"
	case wire.SettingChoice:
		return strings.Join(x.Choices, ", ")
	case wire.SettingText:
		return "a name"
	}
	bounds := text(x.Minimum) + " to " + text(x.Maximum)
	if x.Off != nil {
		bounds += ", or " + *x.Off
	}
	return bounds
}

func newSettingsSet(s *session) *cobra.Command {
	var restart bool
	cmd := s.aboutDatabase("set DATABASE NAME=VALUE...", "Change settings of a database", cobra.MinimumNArgs(2),
		func(t *task, db wire.Database, args []string) error {
			settings := map[string]*string{}
			for _, arg := range args {
				name, value, given := strings.Cut(arg, "=")
				if !given || name == "" {
					return usagef("%q: write NAME=VALUE, such as work_mem=16MB", arg)
				}
				settings[name] = &value
			}
			return t.changeSettings(db, settings, restart)
		})
	cmd.Long = "Change settings of PostgreSQL for a database. They are in force for all sessions at once, except those that need a\n" +
		"restart: these wait for the next one, or with --restart the database is restarted now, which ends its sessions."
	cmd.Example = "  holdfast db settings set shop statement_timeout=30s work_mem=16MB\n  holdfast db settings set shop max_locks_per_transaction=256 --restart"
	cmd.Flags().BoolVar(&restart, "restart", false, "restart the database if a setting needs it, which ends its sessions")
	return cmd
}

func newSettingsReset(s *session) *cobra.Command {
	var restart bool
	cmd := s.aboutDatabase("reset DATABASE NAME...", "Restore the defaults of settings", cobra.MinimumNArgs(2),
		func(t *task, db wire.Database, args []string) error {
			settings := map[string]*string{}
			for _, name := range args {
				settings[name] = nil
			}
			return t.changeSettings(db, settings, restart)
		})
	cmd.Flags().BoolVar(&restart, "restart", false, "restart the database if a setting needs it, which ends its sessions")
	return cmd
}

// changeSettings changes settings and shows those that it was asked to change.
func (t *task) changeSettings(db wire.Database, settings map[string]*string, restart bool) error {
	return shows(t, func(w io.Writer, all wire.SettingList) {
		rows := [][]string{{"NAME", "VALUE", "DEFAULT", "MAY BE", "REMARK"}}
		for _, x := range all.Settings {
			if _, asked := settings[x.Name]; asked {
				rows = append(rows, settingRow(x))
			}
		}
		columns(w, rows)
	})(t.api.UpdateDatabaseSettings(t.ctx, db.ID, wire.UpdateSettings{Settings: settings, Restart: &restart}))
}
