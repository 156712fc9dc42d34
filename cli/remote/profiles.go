package remote

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

func newLogout(s *session) *cobra.Command {
	cmd := s.local("logout", "Forget the key of a profile", cobra.NoArgs, func(t *task, _ []string) error { return t.logout() })
	cmd.Long = "Forget the key of a profile. The key itself stays valid until it expires or a person revokes it, in the\n" +
		"console or with `holdfast admin key revoke`."
	return cmd
}

func (t *task) logout() error {
	name := flagOr(t.profile, variableProfile)
	if name == "" {
		name = currentProfile()
	}
	p, _ := readProfile(name) // an unreadable one is removed as well
	if err := removeProfile(name); errors.Is(err, fs.ErrNotExist) {
		return failf(exitNotFound, "there is no profile %s; `holdfast profile list` shows what there is", name)
	} else if err != nil {
		return err
	}
	return t.show(map[string]any{"profile": name, "url": p.URL, "removed": true}, func(w io.Writer) {
		fmt.Fprintf(w, "forgot the key of profile %s\n", name)
		if p.KeyID != "" {
			t.note("the key stays valid until it is revoked: `holdfast admin key revoke %s`, or in the console", p.KeyID)
		}
	})
}

func newWhoami(s *session) *cobra.Command {
	return s.command("whoami", "Show which appliance and organization the key is for, and what it may do", cobra.NoArgs,
		func(t *task, _ []string) error {
			status, err := t.api.GetAgentStatus(t.ctx)
			if err != nil {
				return err
			}
			result := map[string]any{
				"url": t.connection.base, "profile": t.connection.profile, "organization": status.Organization,
				"projects": status.Projects, "key": status.Key, "server": status.Server,
			}
			if t.connection.profile == "" {
				result["profile"] = nil
			}
			return t.show(result, func(w io.Writer) {
				var projects []string
				for _, p := range status.Projects {
					projects = append(projects, p.Name)
				}
				details(w,
					"organization", status.Organization.Name+" ("+status.Organization.ID+")",
					"projects", strings.Join(projects, ", "),
					"scopes", strings.Join(status.Key.Scopes, " "),
					"may delete", yesNo(status.Key.AllowDangerous),
					"key expires", orNever(formatTime(status.Key.ExpiresAt)),
					"key from", keySource(t.connection),
					"appliance", t.connection.base+", version "+status.Server.Version)
			})
		})
}

func orNever(text string) string {
	if text == "" {
		return "never"
	}
	return text
}

func keySource(c connection) string {
	if c.profile == "" {
		return variableKey
	}
	return "profile " + c.profile
}

func newProfile(s *session) *cobra.Command {
	list := s.local("list", "Show the profiles", cobra.NoArgs, func(t *task, _ []string) error { return t.profileList() })
	use := s.local("use NAME", "Use a profile from now on", cobra.ExactArgs(1), func(t *task, args []string) error {
		if _, err := readProfile(args[0]); errors.Is(err, fs.ErrNotExist) {
			return failf(exitNotFound, "there is no profile %s; `holdfast login --profile %s` makes it", args[0], args[0])
		} else if err != nil {
			return err
		}
		if err := useProfile(args[0]); err != nil {
			return err
		}
		return t.show(map[string]any{"profile": args[0]}, func(w io.Writer) { fmt.Fprintf(w, "profile %s is in use\n", args[0]) })
	})
	use.ValidArgsFunction = completeProfiles
	return Group("profile", "Profiles: an appliance and the key for it", list, use)
}

// shownProfile is a profile without its key.
type shownProfile struct {
	Name  string `json:"name"`
	URL   string `json:"url"`
	InUse bool   `json:"in_use"`
	Error string `json:"error,omitempty"`
}

func (t *task) profileList() error {
	names, err := listProfiles()
	if err != nil {
		return err
	}
	current := flagOr(t.profile, variableProfile)
	if current == "" {
		current = currentProfile()
	}
	shown, rows := []shownProfile{}, [][]string{}
	for _, name := range names {
		p, err := readProfile(name)
		entry := shownProfile{Name: name, URL: p.URL, InUse: name == current && os.Getenv(variableKey) == ""}
		if err != nil {
			entry.Error = err.Error()
		}
		shown = append(shown, entry)
		rows = append(rows, []string{name, entry.URL + entry.Error, yesNo(entry.InUse)})
	}
	return t.table(nil, shown, "there are no profiles; `holdfast login` makes one", []string{"PROFILE", "APPLIANCE", "IN USE"}, rows)
}
