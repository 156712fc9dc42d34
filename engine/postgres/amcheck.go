package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// ErrCorrupt means that a relation is damaged.
var ErrCorrupt = errors.New("corrupt")

// Checked says what CheckRelations checked.
type Checked struct {
	Databases, Tables, Indexes int
	// Structure says that amcheck was available; without it no relation was checked.
	Structure bool
	// Missing names the extensions whose files the machine lacks, each with what to
	// install. Indexes that need them were not checked.
	Missing []string
	// Checksums says whether the cluster's pages have checksums.
	Checksums bool
}

// CheckRelations reads every table, with its TOAST, and every B-tree of all
// databases of an instance, and verifies them with amcheck: the tuples in tables,
// the order and links in indexes. If one is damaged, the error wraps [ErrCorrupt]
// and names it.
//
// It is for an instance that is discarded afterwards: it rolls back the prepared
// transactions, whose locks would make it wait for ever, opens databases that
// refuse connections and creates an extension in each. It executes nothing that
// the tenant made. verify_heapam reads tuples as bytes; bt_index_check compares
// keys by operator classes, which only a superuser can create. Index expressions,
// which the planner would evaluate in any SELECT from the table, are not read at
// all.
func (s *Supervisor) CheckRelations(ctx context.Context, id string) (checked Checked, err error) {
	err = s.act(id, "check", func(i *instance) error { return checkRelations(ctx, i.specification(), &checked) })
	return checked, err
}

func checkRelations(ctx context.Context, spec Spec, checked *Checked) error {
	var databases []string
	err := inDatabase(ctx, spec, "postgres", func(conn *pgx.Conn) (err error) {
		databases, err = prepareChecks(ctx, conn, checked)
		return err
	})
	if err != nil || !checked.Structure {
		return err
	}
	for _, database := range databases {
		err := inDatabase(ctx, spec, database, func(conn *pgx.Conn) error {
			if err := checkDatabase(ctx, conn, checked); err != nil {
				return err
			}
			return checked.addMissing(ctx, conn, spec.Bin.Major)
		})
		if err != nil {
			return fmt.Errorf("database %s: %w", database, err)
		}
		checked.Databases++
	}
	return nil
}

// boundedLocks keeps a check from waiting for ever: nothing else uses the instance.
const boundedLocks = "SET lock_timeout = '1min'"

// prepareChecks lists the databases and opens those that are closed. A database
// whose DROP was interrupted (limit -2) cannot be opened and holds no data.
func prepareChecks(ctx context.Context, conn *pgx.Conn, checked *Checked) ([]string, error) {
	if err := conn.QueryRow(ctx, `select current_setting('data_checksums')::bool,
		exists (select from pg_available_extensions where name = 'amcheck')`).Scan(&checked.Checksums, &checked.Structure); err != nil {
		return nil, err
	}
	if _, err := conn.Exec(ctx, boundedLocks); err != nil {
		return nil, err
	}
	if err := rollBackWhere(ctx, conn, "true"); err != nil {
		return nil, fmt.Errorf("roll back prepared transactions: %w", err)
	}
	if _, err := conn.Exec(ctx, openDatabases("true", "ALLOW_CONNECTIONS true")); err != nil {
		return nil, err
	}
	return namesIn(ctx, conn, "select datname::text from pg_database where not "+invalidated+" order by oid")
}

// relation is a table or an index to check.
type relation struct {
	OID   uint32
	Name  string
	Index bool
}

// relationsToCheck selects heaps and B-trees by the fixed OIDs of their access
// methods (2 and 403).
const relationsToCheck = `select c.oid, format('%I.%I', n.nspname, c.relname), c.relkind = 'i'
	from pg_class c join pg_namespace n on n.oid = c.relnamespace left join pg_index i on i.indexrelid = c.oid
	where c.relpersistence <> 't' and (c.relam = 2 and c.relkind in ('r', 'm', 't')
		or c.relam = 403 and c.relkind = 'i' and i.indisvalid and i.indisready and i.indislive)
	order by c.oid`

func listRelations(ctx context.Context, conn *pgx.Conn) ([]relation, error) {
	rows, _ := conn.Query(ctx, relationsToCheck)
	return pgx.CollectRows(rows, pgx.RowToStructByPos[relation])
}

func checkDatabase(ctx context.Context, conn *pgx.Conn, checked *Checked) error {
	if err := all(ctx, conn, []string{
		boundedLocks,
		// Wherever an existing one was, this one is on the search path.
		"DROP EXTENSION IF EXISTS amcheck CASCADE", "CREATE EXTENSION amcheck SCHEMA pg_catalog",
	}); err != nil {
		return err
	}
	relations, err := listRelations(ctx, conn)
	if IsNotUTF8(err) { // a name that cannot be sent says nothing about its relation
		if _, err = conn.Exec(ctx, "SET client_encoding = SQL_ASCII"); err == nil { // no conversion
			relations, err = listRelations(ctx, conn)
		}
	}
	if err != nil {
		return err
	}
	for _, r := range relations {
		check := checkTable
		if r.Index {
			check = checkIndex
			checked.Indexes++
		} else {
			checked.Tables++
		}
		err := check(ctx, conn, r.OID)
		if pg, ok := errors.AsType[*pgconn.PgError](err); ok && r.Index && pg.Code == "58P01" { // undefined_file: of a library
			checked.Indexes--
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", strings.ToValidUTF8(r.Name, "\uFFFD"), asCorrupt(err))
		}
	}
	return nil
}

// addMissing adds the extensions of the database whose files the machine lacks.
func (checked *Checked) addMissing(ctx context.Context, conn *pgx.Conn, major int) error {
	all, err := Extensions(ctx, conn)
	for _, x := range all {
		if x.Missing() {
			checked.Missing = append(checked.Missing, x.Name+": "+x.Install(major))
		}
	}
	return err
}

// checkTable stops at the first damaged page.
func checkTable(ctx context.Context, conn *pgx.Conn, oid uint32) error {
	rows, _ := conn.Query(ctx, `select format('block %s, tuple %s: %s', blkno, coalesce(offnum, 0), msg)
		from verify_heapam($1::oid::regclass, true, true)`, oid)
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err == nil && len(found) > 0 {
		err = fmt.Errorf("%w: %s", ErrCorrupt, strings.Join(found[:min(len(found), 3)], "; "))
	}
	return err
}

func checkIndex(ctx context.Context, conn *pgx.Conn, oid uint32) error {
	_, err := conn.Exec(ctx, "select bt_index_check($1::oid::regclass, false)", oid)
	return err
}

// asCorrupt wraps what PostgreSQL reports as damage (class XX) in ErrCorrupt.
func asCorrupt(err error) error {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && strings.HasPrefix(pg.Code, "XX") {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return err
}
