package remote

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/cli/client"
)

// keyPrefix begins every API key.
const keyPrefix = "sk_live_"

// login is what `login` was asked for.
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
		"~/.config/holdfast/profiles (or $XDG_CONFIG_HOME). Each appliance or organization can have a profile.\n\n" +
		"With --with-key a key that exists already is read from standard input instead."
	cmd.Example = "  holdfast login\n  holdfast login --url https://db.example.com --profile work --no-browser\n" +
		"  holdfast login --with-key < key.txt"
	flags := cmd.Flags()
	flags.StringVar(&in.preset, "preset", client.PresetDeveloper, "the scopes to ask for: read_only, developer or full_access")
	flags.StringVar(&in.name, "name", "", "what the approval page shows (default: holdfast on this host)")
	flags.BoolVar(&in.noBrowser, "no-browser", false, "open no browser, only show the address and the code")
	flags.BoolVar(&in.withKey, "with-key", false, "read a key from standard input instead")
	flagWords(cmd, "preset", cobra.FixedCompletions(
		[]cobra.Completion{client.PresetReadOnly, client.PresetDeveloper, client.PresetFullAccess}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (t *task) login(in login) error {
	name, c, err := t.loginTarget()
	if err != nil {
		return err
	}
	if t.api, err = t.client(c); err != nil {
		return err
	}
	if warnsOfClearText(c.base) {
		t.remark("careful: %s is plain HTTP to another machine, and the key can be read on the way", c.base)
	}
	p := profile{URL: c.base, CACertificate: c.ca}
	if in.withKey {
		p.APIKey, err = t.secret("API key")
	} else {
		p.APIKey, p.KeyID, err = t.authorize(in)
	}
	if err != nil {
		return explain(err, c.base)
	}
	return t.keep(name, c, p)
}

// loginTarget is the profile that is to be made, and the appliance it is for:
// the one named, else that of the profile there is.
func (t *task) loginTarget() (string, connection, error) {
	name := flagOr(t.profile, variableProfile)
	if name == "" {
		name = currentProfile()
	}
	old, err := readProfile(name)
	if err != nil {
		if _, path := profilePath(name); path != nil {
			return "", connection{}, path
		}
		old = profile{} // there is none, or it cannot be read: it is written anew
	}
	c := connection{ca: old.CACertificate}
	if c.base, err = t.address(flagOr(t.url, variableURL), old); err != nil {
		return "", c, err
	}
	if file := flagOr(t.caFile, variableCA); file != "" {
		if c.ca, err = readCA(file); err != nil {
			return "", c, err
		}
	}
	return name, c, nil
}

// authorize is the device flow of RFC 8628.
func (t *task) authorize(in login) (key, id string, err error) {
	if in.name == "" {
		host, _ := os.Hostname()
		in.name = strings.TrimSpace("holdfast on " + host)
	}
	codes, err := t.api.AuthorizeDevice(t.ctx, client.AuthorizeDevice{ClientName: in.name, ScopePreset: in.preset})
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

// webPage is the page to approve at, the code in it where the appliance has
// such an address. Nothing but a web page is ever opened.
func webPage(codes client.DeviceCodes) (string, error) {
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
	case client.CodeAccessDenied:
		return failf(exitForbidden, "the login was denied in the browser")
	case client.CodeExpiredToken:
		return failf(exitError, "the code has expired before it was approved; `holdfast login` gets another")
	default:
		return err
	}
}

// keep tries the key, and keeps it once it works.
func (t *task) keep(name string, c connection, p profile) (err error) {
	if !strings.HasPrefix(p.APIKey, keyPrefix) {
		return usagef("that is no API key: they begin with %s", keyPrefix)
	}
	c.key, c.profile = p.APIKey, name
	t.connection = c
	if t.api, err = t.client(c); err != nil {
		return err
	}
	status, err := t.api.GetAgentStatus(t.ctx)
	if err != nil && client.CodeOf(err) != client.CodeInsufficientScope {
		return explain(err, c.base)
	}
	if wanted := flagOr(t.project, variableProject); wanted != "" {
		if p.Project, err = t.projectForNew(); err != nil {
			return explain(err, c.base)
		}
	}
	if err := writeProfile(name, p); err != nil {
		return err
	}
	if err := useProfile(name); err != nil {
		return err
	}
	result := map[string]any{"profile": name, "url": c.base, "organization": status.Organization, "projects": status.Projects}
	return t.show(result, func(w io.Writer) {
		as := "" // a key may do without account:read
		if status.Organization.Name != "" {
			as = " as " + printable(status.Organization.Name)
		}
		fmt.Fprintf(w, "signed in to %s%s, kept as profile %s\n", c.base, as, name)
	})
}

// warnsOfClearText reports whether a key would cross a network in the clear.
func warnsOfClearText(base string) bool {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback())
}
