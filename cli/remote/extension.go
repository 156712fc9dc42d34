package remote

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/server/api/wire"
)

func newExtension(s *session) *cobra.Command {
	return Group("extension", "Extensions of a database", newExtensionList(s), newExtensionCreate(s), newExtensionDrop(s))
}

var extensionHeadings = []string{"NAME", "INSTALLED", "AVAILABLE", "CLASS", "SCHEMA", "REMARK"}

func newExtensionList(s *session) *cobra.Command {
	var everything bool
	cmd := s.aboutDatabase("list DATABASE", "Show the extensions that a database has or may have", cobra.ExactArgs(1),
		func(t *task, db wire.Database, _ []string) error {
			found, err := t.api.ListExtensions(t.ctx, db.ID)
			if err != nil {
				return err
			}
			rows := [][]string{}
			for _, x := range found.Extensions {
				if everything || x.InstalledVersion != nil || x.AvailableVersion != nil && x.Unavailable == nil {
					rows = append(rows, extensionRow(x))
				}
			}
			return t.table(nil, found, "there are no extensions", extensionHeadings, rows)
		})
	cmd.Flags().BoolVar(&everything, "all", false, "with those that it cannot have, and why")
	return cmd
}

func extensionRow(x wire.Extension) []string {
	remark := x.Notes
	switch {
	case x.Unavailable != nil:
		remark = *x.Unavailable
	case x.UpdateVersion != nil:
		remark = "update available"
	case x.NeedsRestart:
		remark = "needs a restart: --restart; " + x.Notes
	}
	return []string{x.Name, text(x.InstalledVersion), text(x.AvailableVersion), string(x.Class), x.Schema, remark}
}

func newExtensionCreate(s *session) *cobra.Command {
	var restart bool
	cmd := s.aboutDatabase("create DATABASE EXTENSION", "Create an extension in a database, or update it", cobra.ExactArgs(2),
		func(t *task, db wire.Database, args []string) error {
			in := wire.SetExtension{Name: args[0], Restart: &restart}
			return shows(t, func(w io.Writer, x wire.Extension) { columns(w, [][]string{extensionHeadings, extensionRow(x)}) })(t.api.SetExtension(t.ctx, db.ID, in))
		})
	cmd.Example = "  holdfast extension create shop vector\n  holdfast extension create shop pg_cron --restart"
	cmd.Flags().BoolVar(&restart, "restart", false, "restart the database if the server must load a library, which ends its sessions")
	return cmd
}

func newExtensionDrop(s *session) *cobra.Command {
	return s.aboutDatabase("drop DATABASE EXTENSION", "Drop an extension that no object of the database needs, with its data", cobra.ExactArgs(2),
		func(t *task, db wire.Database, args []string) error {
			if err := t.confirmDrop(db, args[0]); err != nil {
				return err
			}
			return shows(t, func(w io.Writer, x wire.DeletedExtension) { details(w, "dropped", x.Name) })(t.api.DeleteExtension(t.ctx, db.ID, args[0]))
		})
}

// confirmDrop asks before an extension is dropped, and names the tables that go with it.
func (t *task) confirmDrop(db wire.Database, name string) error {
	if t.yes {
		return nil
	}
	found, err := t.api.ListExtensions(t.ctx, db.ID)
	if err != nil {
		return err
	}
	with := "all that belongs to it"
	for _, x := range found.Extensions {
		if x.Name == name && len(x.Tables) > 0 {
			with = "the rows of its tables (" + strings.Join(x.Tables, ", ") + ")"
		}
	}
	return t.confirm("drop the extension %s of %s with %s", name, db.Name, with)
}
