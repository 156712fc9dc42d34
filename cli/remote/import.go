package remote

import (
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"holdfast/cli/client"
	"holdfast/server/api/wire"
)

// Environment variables for the source's secrets.
const (
	variableSource         = "HOLDFAST_SOURCE_URL"
	variableSourcePassword = "PGPASSWORD"
)

func newImport(s *session) *cobra.Command {
	return Group("import", "Import a database from another server", newImportStart(s), newImportList(s), newImportStatus(s), newImportCutover(s), newImportCancel(s))
}

// startImport holds the flags of `import start`.
type startImport struct {
	from            string
	sameCredentials bool
	user            string
	wait            bool
	version         string
	follow          bool
	publication     string
}

func newImportStart(s *session) *cobra.Command {
	var in startImport
	cmd := s.command("start NAME --from URL", "Copy a database from another server into a new one", cobra.ExactArgs(1),
		func(t *task, args []string) error { return t.importStart(args[0], in) })
	cmd.Long = "Copy a database from another server into a new one called NAME. The source's password is never an\n" +
		"argument, where others on this machine could see it: it is taken from " + variableSourcePassword + ", or asked for at a terminal.\n" +
		"The whole URL can also come from " + variableSource + ", or with --from - from standard input.\n\n" +
		"With --follow the new database applies the source's changes after the copy, until `holdfast import cutover NAME`.\n" +
		"The source needs wal_level = logical, a user with REPLICATION, and a publication of its tables.\n\n" +
		"Everything belongs to one user in the new database. Other roles of the source and their privileges are not copied:\n" +
		"`import status` names them, and `holdfast db role create` makes roles here."
	cmd.Example = "  holdfast import start shop --from postgres://app@old.example.com/shop --wait\n" +
		"  echo \"$OLD_URL\" | holdfast import start shop --from -\n" +
		"  holdfast import start shop --from postgres://app@old.example.com/shop --follow --publication everything"
	flags := cmd.Flags()
	flags.StringVar(&in.from, "from", "", "postgres://user@host:port/database, without the password; - reads it, with the password, from standard input")
	flags.BoolVar(&in.sameCredentials, "same-credentials", false, "give the new database the source's user and password")
	flags.StringVar(&in.user, "user", "", "the role that owns the new database (default: app)")
	flags.BoolVar(&in.wait, "wait", false, "wait until it is completed, or follows")
	flags.StringVar(&in.version, "version", "", "the major version of PostgreSQL, such as 16 (default: the appliance's, or one that can follow)")
	flags.BoolVar(&in.follow, "follow", false, "apply the source's changes after the copy, until a cutover")
	flags.StringVar(&in.publication, "publication", "", "with --follow: the publication of the source")
	return cmd
}

// create returns the request for an import.
func (in startImport) create(project, name, source string) wire.CreateImport {
	request := wire.CreateImport{
		Project: project, Name: name, SourceURL: source, SameCredentials: &in.sameCredentials, Username: orNil(in.user),
		Version: orNil(in.version), Publication: orNil(in.publication),
	}
	if in.follow {
		request.Mode = new(wire.ImportFollow)
	}
	return request
}

func (t *task) importStart(name string, in startImport) error {
	if in.follow != (in.publication != "") {
		return usagef("--follow and --publication go together: name the publication of the source, as CREATE PUBLICATION everything FOR ALL TABLES; makes one")
	}
	source, err := t.source(in.from)
	if err != nil {
		return err
	}
	project, err := t.projectForNew()
	if err != nil {
		return err
	}
	i, err := t.api.CreateImport(t.ctx, in.create(project, name, source))
	if err != nil {
		return err
	}
	if in.wait {
		return t.awaitImport(i.ID)
	}
	return t.show(i, func(w io.Writer) {
		fmt.Fprintf(w, "the import of %s has begun (%s)\n", name, i.ID)
		t.note("`holdfast import status %s --wait` shows how far it is", i.ID)
	})
}

// source returns the source's URL with its password.
func (t *task) source(from string) (string, error) {
	switch {
	case from == "-":
		line, err := readLine(t.ctx, os.Stdin)
		return strings.TrimSpace(line), err
	case from == "" && os.Getenv(variableSource) != "":
		return os.Getenv(variableSource), nil
	case from == "":
		return "", usagef("say where from: --from postgres://user@host:port/database, or %s", variableSource)
	}
	return SourceURL("from", from, func(u *url.URL) (string, error) {
		if !term.IsTerminal(int(os.Stdin.Fd())) { // standard input may never have a line
			return "", usagef("from: the password of the source is missing, and there is no terminal to ask for it: set %s, or give the whole URL "+
				"in %s or, with --from -, on standard input", variableSourcePassword, variableSource)
		}
		return Secret(t.ctx, t.cmd.ErrOrStderr(), "Password of "+u.User.Username()+" at "+u.Host)
	})
}

// SourceURL completes a source URL given in field, which must not contain a
// password. The password comes from PGPASSWORD, else from ask.
func SourceURL(field, from string, ask func(*url.URL) (string, error)) (string, error) {
	if scheme, _, ok := strings.Cut(from, "://"); !ok || !strings.EqualFold(scheme, "postgres") && !strings.EqualFold(scheme, "postgresql") {
		return "", usagef("%s: must begin with postgres:// or postgresql://: only a PostgreSQL server can be imported from", field)
	}
	u, err := url.Parse(from)
	if err != nil {
		return "", usagef("%s: is not a URL such as postgres://user@host:port/database", field)
	}
	if _, visible := u.User.Password(); visible || u.Query().Has("password") {
		return "", usagef("%s: leave the password out, others on this machine can see it; it is taken from %s", field, variableSourcePassword)
	}
	user := u.User.Username()
	if user == "" {
		return "", usagef("%s: name the user, as in postgres://user@host:port/database", field)
	}
	password := os.Getenv(variableSourcePassword)
	if password == "" {
		if password, err = ask(u); err != nil {
			return "", err
		}
	}
	if password != "" {
		u.User = url.UserPassword(user, password)
	}
	return u.String(), nil
}

func newImportList(s *session) *cobra.Command {
	var status string
	cmd := s.command("list", "Show the imports", cobra.NoArgs, func(t *task, _ []string) error {
		return list(t, selected(t, client.Filter{}, t.imports(status)), "there were no imports; `holdfast import start` begins one",
			[]string{"NAME", "ID", "STATUS", "FROM", "STARTED"}, func(i wire.Import) []string {
				return []string{i.Name, i.ID, importStatus(i), i.Source.Host + "/" + i.Source.Database, Ago(&i.StartedAt)}
			})
	})
	cmd.Flags().StringVar(&status, "status", "", "only those with this status, such as completed or failed")
	return cmd
}

func importStatus(i wire.Import) string {
	if i.Status.Final() || i.Status == wire.ImportFollowing || i.Status == wire.ImportCuttingOver {
		return strings.ReplaceAll(string(i.Status), "_", " ")
	}
	return fmt.Sprintf("%s %d%%", i.Status, i.ProgressPercent)
}

func newImportStatus(s *session) *cobra.Command {
	var wait bool
	cmd := s.command("status IMPORT", "Show how far an import is, and its log", cobra.ExactArgs(1), func(t *task, args []string) error {
		id, err := t.importID(args[0])
		if err != nil {
			return err
		}
		if wait {
			return t.awaitImport(id)
		}
		return shows(t, importDetails)(t.api.GetImport(t.ctx, id))
	})
	cmd.Long = "Show how far an import is, and its log. IMPORT is its id, or the name of the database that it makes."
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until it is completed, or follows")
	return s.positions(cmd, importNames)
}

func (t *task) awaitImport(id string) error {
	m := t.meter("importing")
	i, err := t.api.AwaitImport(t.ctx, id, func(op wire.Operation) { m.percent(op.ProgressPercent, text(op.Phase)) })
	m.stop()
	t.noteGoesOn("`holdfast import status %s` shows how far it is, `holdfast import cancel %s` cancels it", id, id)
	if err != nil {
		return err
	}
	return t.showImport(i)
}

func importDetails(w io.Writer, i wire.ImportDetail) {
	details(w,
		"name", i.Name, "id", i.ID, "database", i.DatabaseID,
		"from", fmt.Sprintf("%s@%s:%d/%s", i.Source.User, i.Source.Host, i.Source.Port, i.Source.Database),
		"status", importStatus(i.Import), "error", text(i.Error),
		"tables", fmt.Sprintf("%d of %d", i.Tables.Done, i.Tables.Total), "rows", fmt.Sprint(i.RowsCopied),
		"copied", size(i.BytesCopied), "extensions missing", strings.Join(i.MissingExtensions, ", "), "roles left out", rolesLeftOut(i.RolesLeftOut),
		"started", formatTime(&i.StartedAt), "completed", formatTime(i.CompletedAt))
	followDetails(w, i)
	printMore(w, []string{"NOT COPIED", "SQLSTATE", "WHY"}, i.Errors, func(flaw wire.ImportFlaw) []string {
		return []string{flaw.Object, text(flaw.SQLState), flaw.Message}
	})
	printMore(w, []string{"AT", "LEVEL", "LOG"}, i.Log, func(line wire.ImportLine) []string {
		return []string{formatTime(&line.At), string(line.Level), line.Message}
	})
}

// rolesLeftOut names the roles of the source that are not here.
func rolesLeftOut(roles []wire.ImportRole) string {
	names := make([]string, len(roles))
	for n, r := range roles {
		names[n] = fmt.Sprintf("%s (grants: %d)", r.Name, r.Grants)
	}
	return strings.Join(names, ", ")
}
