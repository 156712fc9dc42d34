package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/engine/model"
	"holdfast/server/operator"
)

func newAdminDatabase() *cobra.Command {
	cmd := newAdminCommand("set DATABASE [NAME=VALUE]…",
		"Give a database PostgreSQL settings of its own, and restart it with them",
		model.ActionDatabaseSettings, cobra.MinimumNArgs(2),
		func(_ *admin, _ *cobra.Command, args []string) (any, error) {
			settings, err := parseSettings(args[1:])
			return operator.Settings{Database: args[0], Settings: settings}, err
		},
		func(w io.Writer, s operator.Settings) {
			rows("SETTING\tVALUE", func(name string) []any { return []any{name, s.Settings[name]} })(w, slices.Sorted(maps.Keys(s.Settings)))
		}, inOrganization)
	cmd.Long = "Give a database PostgreSQL settings of its own, over those fitted to the machine, and restart it.\n" +
		"NAME= goes back to what is fitted. With settings PostgreSQL does not start with, nothing changes; the appliance\n" +
		"must run."
	return group("database", "Databases", cmd)
}

func parseSettings(args []string) (map[string]string, error) {
	settings := map[string]string{}
	for _, arg := range args {
		name, value, found := strings.Cut(arg, "=")
		if !found || name == "" {
			return nil, usageError{fmt.Errorf("%q is not NAME=VALUE", arg)}
		}
		settings[strings.ToLower(name)] = value
	}
	return settings, nil
}
