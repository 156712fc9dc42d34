package remote

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"holdfast/cli/client"
	"holdfast/server/api/wire"
)

func newBackupExport(s *session) *cobra.Command {
	var wait, fresh bool
	var dbname string
	cmd := s.command("export DATABASE [FILE|DIRECTORY|-]", "Download the newest export of a database, for pg_restore", cobra.RangeArgs(1, 2),
		func(t *task, args []string) error {
			db, err := t.database(args[0])
			if err != nil {
				return err
			}
			to := ""
			if len(args) > 1 {
				to = args[1]
			}
			if fresh {
				if _, err := t.api.CreateExport(t.ctx, db.ID, wire.CreateExport{DBName: orNil(dbname)}); err != nil {
					return err
				}
			}
			return t.export(exported{db, dbname}, to, wait || fresh)
		})
	cmd.Long = "Download the newest export of a database. An export is made after each backup, in pg_dump's custom format; of a\n" +
		"database beside the main one (--dbname) only with --new:\n" +
		"`pg_restore --no-owner --no-acl` reads it. Without these options it needs roles named like the users of the\n" +
		"database. A download that was broken off goes on where it stopped when it is asked for again."
	cmd.Example = "  holdfast backup export shop\n  holdfast backup export shop - | pg_restore --no-owner --no-acl -d \"$OTHER_URL\""
	cmd.Flags().BoolVar(&wait, "wait", false, "wait for the export that follows the newest backup")
	cmd.Flags().BoolVar(&fresh, "new", false, "make an export now, and wait for it")
	s.dbnameFlag(cmd, &dbname)
	return s.positions(cmd, databaseNames, nil)
}

// exported is a database with the one of PostgreSQL that is exported, "" for the main one.
type exported struct {
	wire.Database
	dbname string
}

// newest names the newest export.
func (e exported) newest() string {
	if e.dbname == "" {
		return "the export after the newest backup"
	}
	return "the newest export of " + e.dbname
}

func (t *task) export(db exported, to string, wait bool) error {
	x, err := t.readyExport(db, wait)
	if err != nil {
		return err
	}
	m := t.meter("downloading " + *x.Filename)
	m.expect(*x.SizeBytes, "")
	if isStream(to) {
		defer m.stop()
		return t.stream(t.exportSource(db, x), to, m)
	}
	file, err := t.saveExport(db, x, to, m)
	m.stop()
	if err != nil {
		return err
	}
	return transferred(t, []savedExport{{x, file}}, nil, func(s savedExport) string {
		return fmt.Sprintf("%s (%s)", s.File, sizeOr(s.SizeBytes))
	})
}

// readyExport returns the newest ready export or, with wait, the newest.
func (t *task) readyExport(db exported, wait bool) (wire.Export, error) {
	x, err := t.api.GetExport(t.ctx, db.ID, db.dbname)
	if err == nil && wait {
		m := t.meter("exporting " + cmp.Or(db.dbname, db.Name))
		x, err = t.api.AwaitExport(t.ctx, db.ID, db.dbname, nil)
		m.stop()
		t.noteGoesOn("`holdfast operation list --database %s --type export` shows how far it is", db.Name)
	}
	if err != nil {
		return x, err
	}
	if err := failed("the export", x.Status == wire.ExportFailed, x.Error); err != nil {
		return x, err
	}
	if x.Newer != nil {
		failure := failed(db.newest(), x.Newer.Status == wire.ExportFailed, x.Newer.Error)
		switch {
		case wait && failure != nil:
			return x, failure
		case failure != nil:
			t.note("this one is older: %v", failure)
		case !wait:
			t.note("%s is %s; --wait waits for it", db.newest(), x.Newer.Status)
		}
	}
	if x.Status != wire.ExportReady || x.Filename == nil || x.SizeBytes == nil || x.ChecksumSHA256 == nil {
		return x, failf(exitConflict, "the export of %s is %s; --wait waits for it", cmp.Or(db.dbname, db.Name), x.Status)
	}
	return x, nil
}

// savedExport is the result of downloading an export.
type savedExport struct {
	wire.Export
	File string `json:"file"`
}

func (t *task) saveExport(db exported, x wire.Export, to string, m *meter) (string, error) {
	dir, name, err := destinationOf(*x.Filename, to)
	if err != nil {
		return "", err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", usagef("%v", err)
	}
	defer root.Close()
	src := t.exportSource(db, x)
	if err := removeOutdated(root, filepath.Dir(name), []downloadSource{src}); err != nil {
		return "", err
	}
	return dir + string(os.PathSeparator) + name, t.save(root, name, src, m)
}

func (t *task) exportSource(db exported, x wire.Export) downloadSource {
	return downloadSource{
		name: *x.Filename, id: db.ID, etag: `"` + *x.ChecksumSHA256 + `"`, size: *x.SizeBytes,
		sum: newSHA256, want: *x.ChecksumSHA256,
		url: func() (string, error) {
			again, err := t.api.GetExport(t.ctx, db.ID, db.dbname)
			if err == nil && (again.ID != x.ID || again.DownloadURL == nil) {
				err = client.ErrChanged
			}
			return text(again.DownloadURL), err
		},
	}
}
