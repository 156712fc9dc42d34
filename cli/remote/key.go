package remote

import (
	"fmt"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast/cli/client"
	"holdfast/server/api/wire"
)

func newKey(s *session) *cobra.Command {
	return Group("key", "API keys", newKeyList(s), newKeyCreate(s), newKeyGet(s), newKeyUpdate(s), newKeyRevoke(s), newKeyS3(s))
}

func newKeyList(s *session) *cobra.Command {
	return s.command("list", "Show the API keys", cobra.NoArgs, func(t *task, _ []string) error {
		return list(t, t.api.Keys(t.ctx, client.KeyOptions{}), "there are no keys", []string{"ID", "NAME", "KEY", "PRESET", "MAY DELETE", "STATE", "LAST USED"},
			func(k wire.Key) []string {
				return []string{k.ID, k.Name, k.Preview, string(k.Preset), yesNo(k.AllowDangerous), KeyState(k.RevokedAt, k.ExpiresAt), Ago(k.LastUsedAt)}
			})
	})
}

// KeyState reports whether a key is still valid, and until when.
func KeyState(revoked, expires *time.Time) string {
	switch {
	case revoked != nil:
		return "revoked"
	case expires == nil:
		return "valid"
	case time.Now().After(*expires):
		return "expired"
	default:
		return "until " + expires.Format(time.DateOnly)
	}
}

func newKeyCreate(s *session) *cobra.Command {
	var in wire.CreateKey
	var preset, expires string
	var scopes []string
	cmd := s.command("create NAME", "Make an API key; it is shown only once", cobra.ExactArgs(1), func(t *task, args []string) (err error) {
		in.Name, in.Preset = args[0], orNil(wire.ScopePreset(preset))
		for _, scope := range scopes {
			in.Scopes = append(in.Scopes, wire.Scope(scope))
		}
		if in.ExpiresAt, err = expiry(expires); err != nil {
			return err
		}
		return shows(t, func(w io.Writer, made wire.CreatedKey) {
			fmt.Fprintln(w, made.APIKey)
			t.note("%s (%s) is %s", made.Key.ID, made.Key.Name, stateInWords(made.Key))
		})(t.api.CreateKey(t.ctx, in))
	})
	cmd.Long = "Make an API key; it is shown only once. It may do at most what the key in use may do, for at most as long.\n" +
		"It deletes nothing until a person lets it, on its page in the console."
	cmd.Example = "  holdfast key create ci --preset developer --expires 90d\n  holdfast key create backups --scopes backup:create,backup:list"
	cmd.Flags().StringVar(&preset, "preset", "", "read_only, developer or full_access")
	cmd.Flags().StringSliceVar(&scopes, "scopes", nil, "single scopes instead of a preset, such as database:read,storage:read")
	cmd.Flags().StringVar(&expires, "expires", "", "how long the key is valid, such as 12h or 90d (default: as long as the key in use)")
	return cmd
}

func stateInWords(k wire.Key) string {
	if k.ExpiresAt == nil {
		return "valid until it is revoked"
	}
	return "valid " + KeyState(k.RevokedAt, k.ExpiresAt)
}

// expiry returns the end of a life such as 12h or 90d that begins now, nil for "".
func expiry(life string) (*time.Time, error) {
	if life == "" {
		return nil, nil
	}
	d, err := ParseLife(life)
	if err != nil {
		return nil, usagef("expires: %v", err)
	}
	at := time.Now().Add(d).UTC().Truncate(time.Second)
	return &at, nil
}

// ParseLife parses a duration above 0, which may be in days.
func ParseLife(text string) (time.Duration, error) {
	life, err := ParseDuration(text)
	if err != nil || life <= 0 {
		return 0, fmt.Errorf("%q is not a duration such as 12h or 90d", text)
	}
	return life, nil
}

func newKeyGet(s *session) *cobra.Command {
	cmd := s.command("get KEY", "Show an API key", cobra.ExactArgs(1), func(t *task, args []string) error {
		id, err := t.keyID(args[0])
		if err != nil {
			return err
		}
		return shows(t, keyDetails)(t.api.GetKey(t.ctx, id))
	})
	return s.positions(cmd, keyNames)
}

func keyDetails(w io.Writer, k wire.Key) {
	details(w,
		"id", k.ID, "name", k.Name, "key", k.Preview, "state", KeyState(k.RevokedAt, k.ExpiresAt), "preset", string(k.Preset),
		"scopes", strings.Join(k.Scopes, " "), "may delete", yesNo(k.AllowDangerous), "created", formatTime(&k.CreatedAt), "by", actor(k.CreatedBy),
		"expires", formatTime(k.ExpiresAt), "revoked", formatTime(k.RevokedAt), "last used", Ago(k.LastUsedAt), "from", text(k.LastUsedIP))
}

func newKeyUpdate(s *session) *cobra.Command {
	var name, expires string
	cmd := s.command("update KEY", "Rename an API key, or make it expire sooner", cobra.ExactArgs(1), func(t *task, args []string) (err error) {
		in := wire.UpdateKey{Name: orNil(name)}
		if in.ExpiresAt, err = expiry(expires); err != nil {
			return err
		}
		if in == (wire.UpdateKey{}) {
			return usagef("say what is to change: --name or --expires")
		}
		id, err := t.keyID(args[0])
		if err != nil {
			return err
		}
		return shows(t, keyDetails)(t.api.UpdateKey(t.ctx, id, in))
	})
	cmd.Long = "Rename an API key, or make it expire sooner. Only a person can make it valid for longer, or let it delete:\non its page in the console."
	cmd.Flags().StringVar(&name, "name", "", "its new name")
	cmd.Flags().StringVar(&expires, "expires", "", "how long it is valid from now on, such as 12h or 90d")
	return s.positions(cmd, keyNames)
}

func newKeyRevoke(s *session) *cobra.Command {
	cmd := s.command("revoke KEY", "End an API key at once", cobra.ExactArgs(1), func(t *task, args []string) error {
		id, err := t.keyID(args[0])
		if err != nil {
			return err
		}
		if err := t.confirm("end the key %s for good", args[0]); err != nil {
			return err
		}
		return shows(t, func(w io.Writer, k wire.Key) { fmt.Fprintf(w, "%s (%s) is revoked\n", k.ID, k.Name) })(t.api.RevokeKey(t.ctx, id))
	})
	return s.positions(cmd, keyNames)
}

// keyID returns the id of the key with the given id, or with that name, which no other key that is not revoked may have.
func (t *task) keyID(given string) (string, error) {
	if isID(given, idKey) {
		return given, nil
	}
	all, err := collect(t.validKeys())
	if err != nil {
		return "", err
	}
	k, err := pick("key", given, all, namedKey)
	return k.ID, err
}

func namedKey(k wire.Key) named { return named{id: k.ID, name: k.Name} }

// validKeys yields the keys that are not revoked.
func (t *task) validKeys() iter.Seq2[wire.Key, error] {
	return func(yield func(wire.Key, error) bool) {
		for k, err := range t.api.Keys(t.ctx, client.KeyOptions{}) {
			if k.RevokedAt == nil && !yield(k, err) {
				return
			}
		}
	}
}

// keyNames yields the keys that are not revoked, by id: their names need not be unique.
func keyNames(t *task, _ []string, _ string) iter.Seq2[named, error] {
	return func(yield func(named, error) bool) {
		for k, err := range t.validKeys() {
			if !yield(named{id: k.ID, note: k.Name}, err) {
				return
			}
		}
	}
}
