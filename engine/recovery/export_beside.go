package recovery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// Exports of databases beside the tenant's are made when somebody asks for one. One of each name is kept, and of
// [postgres.MaxBeside] names at most.

// boundExports makes room for an export of the database dbname among all exports, the newest first: it drops those of the
// name whose newest is the oldest, unless one of them is still to be made.
func boundExports(tx *meta.Tx, all []model.Export, dbname string) error {
	var names, waiting []string // the newest first
	for _, x := range all {
		if x.DBName == "" || x.DBName == dbname {
			continue
		}
		if !slices.Contains(names, x.DBName) {
			names = append(names, x.DBName)
		}
		if x.Status == model.ExportPending || x.Status == model.ExportRunning {
			waiting = append(waiting, x.DBName)
		}
	}
	if dbname == "" || len(names) < postgres.MaxBeside {
		return nil
	}
	for _, name := range slices.Backward(names) {
		if !slices.Contains(waiting, name) {
			return dropExports(tx, all, func(x model.Export) bool { return x.DBName == name })
		}
	}
	return model.Errorf(model.CodeConflict, "%d exports of databases beside this one are still to be made; ask again when they are", len(names))
}

// dropExports drops those of the exports that a condition selects.
func dropExports(tx *meta.Tx, all []model.Export, selects func(model.Export) bool) error {
	for _, x := range all {
		if selects(x) {
			if err := databases.DropExport(tx, x); err != nil {
				return err
			}
		}
	}
	return nil
}

// prepareExport returns the name of the database that x is about, and which exports are outdated with x besides the older ones of
// that database. An export of the tenant's database outdates those of databases that are no longer beside it.
func (s *Service) prepareExport(ctx context.Context, x model.Export, db model.Database) (dbname string, outdated func(model.Export) bool, err error) {
	if err := s.databases.AdmitDumper(ctx, db, x.DBName); err != nil || x.DBName != "" {
		return x.DBName, func(model.Export) bool { return false }, err
	}
	all, err := meta.Value(s.core.Meta.View, func(tx *meta.Tx) ([]model.Export, error) { return core.AllUnder(tx.Exports(), db.ID) })
	if err != nil {
		return "", nil, err
	}
	gone, err := s.goneBeside(ctx, db, all)
	return db.Name, func(x model.Export) bool {
		return slices.Contains(gone, x.DBName) && (x.Status == model.ExportReady || x.Status == model.ExportFailed)
	}, err
}

// goneBeside returns the names in exports of databases that are no longer beside the tenant's.
func (s *Service) goneBeside(ctx context.Context, db model.Database, exports []model.Export) (gone []string, err error) {
	var names []string
	for _, x := range exports {
		switch x.DBName {
		case "":
		case db.Name: // the tenant's has taken the name
			gone = append(gone, x.DBName)
		default:
			names = append(names, x.DBName)
		}
	}
	if len(names) == 0 {
		return gone, nil
	}
	var absent []string
	err = s.databases.Inspect(ctx, db, databases.Maintenance, func(ctx context.Context, conn *pgx.Conn) (err error) {
		absent, err = postgres.AbsentDatabases(ctx, conn, names)
		return err
	})
	return append(gone, absent...), err
}

// cannotExport reports whether an export has failed because its database is gone, or closed by its owner.
func cannotExport(err error) bool {
	return errors.Is(err, postgres.ErrNoDatabase) || errors.Is(err, postgres.ErrDatabaseClosed)
}

// exportFilename returns the name of an export's file, in letters that every file system takes.
func exportFilename(db model.Database, x model.Export) string {
	name := db.Name
	if x.DBName != "" {
		name += "-" + strings.Map(plainLetter, x.DBName)
	}
	return fmt.Sprintf("%s-%s.dump", name, x.CreatedAt.Format("20060102T150405Z"))
}

func plainLetter(r rune) rune {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("_-.", r):
		return r
	}
	return '_'
}
