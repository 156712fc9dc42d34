package remote

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/cli/client"
	"holdfast/server/api/wire"
)

// keyPrefix is the prefix of every API key.
const keyPrefix = "sk_live_"

// login holds the flags of `login`.
type login struct {
	preset, name string
	noBrowser    bool
	withKey      bool
}

func newLogin(s *session) *cobra.Command {
	var in login
	cmd := s.local("login", "Sign in: approve this machine in a browser, and keep its key", cobra.NoArgs,
		func(t *task, _ []string) error { return t.login(in) })
	cmd.Long = "Sign in. A browser opens at the appliance's console, where a signed-in person compares the code shown\n" +
		"here and approves. The key that comes of it is kept in a file that only you can read, in\n" +
		"~/.config/holdfast/profiles (or $XDG_CONFIG_HOME). Each appliance or organization can have a profile, and\n" +
		"--profile names it; an appliance does not take the place of another without.\n\n" +
		"With --with-key a key that exists already is read from standard input instead."
	cmd.Example = "  holdfast login\n  holdfast login --url https://db.example.com --profile work --no-browser\n" +
		"  holdfast login --with-key < key.txt"
	flags := cmd.Flags()
	flags.StringVar(&in.preset, "preset", string(wire.PresetDeveloper), "the scopes to ask for: read_only, developer or full_access")
	flags.StringVar(&in.name, "name", "", "what the approval page shows (default: holdfast on this host)")
	flags.BoolVar(&in.noBrowser, "no-browser", false, "open no browser, only show the address and the code")
	flags.BoolVar(&in.withKey, "with-key", false, "read a key from standard input instead")
	flagWords(cmd, "preset", cobra.FixedCompletions(
		[]cobra.Completion{string(wire.PresetReadOnly), string(wire.PresetDeveloper), string(wire.PresetFullAccess)}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (t *task) login(in login) error {
	name, p, err := t.loginTarget()
	if err != nil {
		return err
	}
	if t.api, err = t.client(connection{base: p.URL, ca: p.CACertificate}); err != nil {
		return err
	}
	if warnsOfClearText(p.URL) {
		t.note("careful: %s is plain HTTP to another machine, and the key can be read on the way", p.URL)
	}
	if in.withKey {
		p.APIKey, err = Secret(t.ctx, t.cmd.ErrOrStderr(), "API key")
	} else {
		p.APIKey, p.KeyID, err = t.authorize(in)
	}
	if err != nil {
		return explain(err, p.URL)
	}
	return t.keep(name, p)
}

// loginTarget returns the profile to write, still without a key: for the given
// address, else for the address it already has.
func (t *task) loginTarget() (string, profile, error) {
	name := flagOr(t.profile, variableProfile)
	named := name != ""
	if !named {
		name = currentProfile()
	}
	old, err := readProfile(name)
	if err != nil {
		if _, path := profilePath(name); path != nil {
			return "", profile{}, path
		}
		old = profile{} // missing or unreadable: it is replaced
	}
	var p profile
	if p.URL, err = t.address(flagOr(t.url, variableURL), old); err != nil {
		return "", p, err
	}
	if p.URL == old.URL {
		p.CACertificate, p.Project = old.CACertificate, old.Project
	} else if old.URL != "" && !named {
		return "", p, usagef("the profile %s is for %s; --profile NAME keeps the key for %s beside it", name, old.URL, p.URL)
	}
	if file := flagOr(t.caFile, variableCA); file != "" {
		if p.CACertificate, err = readCA(file); err != nil {
			return "", p, err
		}
	}
	return name, p, nil
}

// authorize runs the device flow of RFC 8628.
func (t *task) authorize(in login) (key, id string, err error) {
	if in.name == "" {
		host, _ := os.Hostname()
		in.name = strings.TrimSpace("holdfast on " + host)
	}
	codes, err := t.api.AuthorizeDevice(t.ctx, wire.AuthorizeDevice{ClientName: &in.name, ScopePreset: orNil(wire.ScopePreset(in.preset))})
	if err != nil {
		return "", "", err
	}
	page, err := webPage(codes)
	if err != nil {
		return "", "", err
	}
	errs := t.cmd.ErrOrStderr()
	fmt.Fprintf(errs, "Your code:  %s\nApprove it at %s\n", printable(codes.UserCode), printable(page))
	if !in.noBrowser && openBrowser(page) == nil {
		fmt.Fprintln(errs, "(a browser was opened there)")
	}
	m := t.meter("waiting for approval")
	token, err := t.api.AwaitDeviceToken(t.ctx, codes)
	m.stop()
	return token.APIKey, token.Key.ID, loginError(err)
}

// webPage returns the approval page, with the code in its address if the
// appliance offers that. It accepts only web pages.
func webPage(codes wire.DeviceCodes) (string, error) {
	page := codes.VerificationURIComplete
	if page == "" {
		page = codes.VerificationURI
	}
	u, err := url.Parse(page)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", fmt.Errorf("the appliance sends people to %q, which is no web page", page)
	}
	return page, nil
}

func loginError(err error) error {
	switch client.CodeOf(err) {
	case wire.CodeAccessDenied:
		return failf(exitForbidden, "the login was denied in the browser")
	case wire.CodeExpiredToken:
		return failf(exitError, "the code has expired before it was approved; `holdfast login` gets another")
	default:
		return err
	}
}

// keep saves the key once a request with it has worked.
func (t *task) keep(name string, p profile) (err error) {
	if !strings.HasPrefix(p.APIKey, keyPrefix) {
		return usagef("that is no API key: they begin with %s", keyPrefix)
	}
	t.connection = connection{base: p.URL, key: p.APIKey, ca: p.CACertificate, profile: name}
	if t.api, err = t.client(t.connection); err != nil {
		return err
	}
	status, err := t.api.GetAgentStatus(t.ctx)
	if err != nil && client.CodeOf(err) != wire.CodeInsufficientScope {
		return notSaved(explain(err, p.URL), p)
	}
	if err == nil && !slices.ContainsFunc(status.Projects, func(of wire.Project) bool { return of.ID == p.Project }) {
		p.Project = "" // it belonged to another organization
	}
	if err := writeProfile(name, p); err != nil {
		return notSaved(err, p)
	}
	if err := useProfile(name); err != nil {
		return err
	}
	if wanted := flagOr(t.project, variableProject); wanted != "" {
		if p.Project, err = t.projectForNew(); err != nil {
			t.note("the key is kept as profile %s, without a project", name)
			return explain(err, p.URL)
		}
		if err := writeProfile(name, p); err != nil {
			return err
		}
	}
	result := map[string]any{"profile": name, "url": p.URL, "organization": status.Organization, "projects": status.Projects}
	return t.show(result, func(w io.Writer) {
		as := "" // a key may lack account:read
		if status.Organization.Name != "" {
			as = " as " + printable(status.Organization.Name)
		}
		fmt.Fprintf(w, "signed in to %s%s, kept as profile %s\n", p.URL, as, name)
	})
}

// notSaved adds that a newly issued key was not saved but is still valid.
func notSaved(err error, p profile) error {
	if p.KeyID == "" {
		return err
	}
	return &failure{ExitCode(err), err.Error() + "; the key was not kept, and stays valid until it is revoked: " +
		"`holdfast admin key revoke " + p.KeyID + "`, or in the console", err}
}

// warnsOfClearText reports whether a key would cross a network unencrypted.
func warnsOfClearText(base string) bool {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback())
}
