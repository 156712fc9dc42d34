package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"holdfast/cli/remote"
	"holdfast/engine/model"
	"holdfast/server/api/wire"
	"holdfast/server/operator"
)

func newAdminKey() *cobra.Command {
	return group("key", "API keys", newAdminKeyCreate(), newAdminKeyList(), newAdminKeyUpdate(), newAdminKeyRevoke())
}

func newAdminKeyCreate() *cobra.Command {
	var in operator.NewKey
	var expires string
	cmd := newAdminCommand("create", "Make an API key; it is shown only once", model.ActionKeyCreate, cobra.NoArgs,
		func(_ *admin, _ *cobra.Command, _ []string) (any, error) {
			life, err := parseLife("--expires", expires)
			in.ExpiresIn = life
			return in, err
		},
		func(w io.Writer, created operator.CreatedKey) {
			fmt.Fprintln(w, created.APIKey)
		}, inOrganization)
	flags := cmd.Flags()
	flags.StringVar(&in.Name, "name", "", "what the key is for")
	flags.StringVar(&in.Preset, "preset", "", "read_only, developer or full_access")
	flags.StringSliceVar(&in.Scopes, "scopes", nil, "single scopes instead of a preset, such as database:read,storage:read")
	flags.BoolVar(&in.AllowDangerous, "allow-dangerous", false, "let the key delete databases, backups, buckets and objects")
	flags.StringVar(&expires, "expires", "", "how long the key is valid, such as 12h or 90d (default: until revoked)")
	return cmd
}

// parseLife parses a flag's duration, which may be in days; "" is 0.
func parseLife(flag, text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	life, err := remote.ParseLife(text)
	if err != nil {
		return 0, usageError{fmt.Errorf("%s: %w", flag, err)}
	}
	return life, nil
}

func newAdminKeyList() *cobra.Command {
	return newAdminCommand("list", "Show the API keys", model.ActionKeyList, cobra.NoArgs, nothing,
		rows("ID\tNAME\tKEY\tPRESET\tSTATE\tLAST USED", func(k wire.Key) []any {
			return []any{k.ID, k.Name, k.Preview, k.Preset, remote.KeyState(k.RevokedAt, k.ExpiresAt), cmp.Or(remote.Ago(k.LastUsedAt), "never")}
		}), inOrganization)
}

func newAdminKeyUpdate() *cobra.Command {
	var allow bool
	cmd := newAdminCommand("update ID", "Turn an API key's dangerous-operations toggle on or off", model.ActionKeyDangerous, cobra.ExactArgs(1),
		func(_ *admin, cmd *cobra.Command, args []string) (any, error) {
			if !cmd.Flags().Changed("allow-dangerous") {
				return nil, usageError{errors.New("say --allow-dangerous=true or --allow-dangerous=false")}
			}
			return operator.KeyDangerous{ID: args[0], AllowDangerous: allow}, nil
		},
		func(w io.Writer, k wire.Key) {
			may := "may delete nothing"
			if k.AllowDangerous {
				may = "may delete what its permissions name"
			}
			fmt.Fprintf(w, "%s (%s) %s\n", k.ID, k.Name, may)
		}, inOrganization)
	cmd.Flags().BoolVar(&allow, "allow-dangerous", false, "true lets the key delete databases, backups, buckets and objects; false ends that")
	return cmd
}

func newAdminKeyRevoke() *cobra.Command {
	return newAdminCommand("revoke ID", "End an API key at once", model.ActionKeyRevoke, cobra.ExactArgs(1), target,
		func(w io.Writer, k wire.Key) { fmt.Fprintf(w, "%s (%s) is revoked\n", k.ID, k.Name) }, inOrganization,
		asking(func(_ *admin, args []string) string { return fmt.Sprintf("end the key %s for good", args[0]) }))
}
