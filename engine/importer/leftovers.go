package importer

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/model"
)

// leftover is a kind of object that pg_dump is not asked for, and that an owner cannot have here.
type leftover struct {
	list          string // a query for names
	since, before int    // range of server versions that support the query; 0 for any
	tell          func(a *Account, name string)
}

var leftovers = []leftover{
	{
		list: definers("r.rolsuper"),
		tell: func(a *Account, name string) {
			a.Say(model.ImportWarning, fmt.Sprintf("the function %s, a superuser, is SECURITY DEFINER: it runs as the owner of the database here, who is not a superuser", oneLine(name)))
		},
	},
	{
		list: definers("not r.rolsuper and not" + ownsHere),
		tell: func(a *Account, name string) {
			a.flaw("FUNCTION "+name, errors.New("it is SECURITY DEFINER and runs as the owner of the database here, who may do more than its owner in the source; see who may execute it"))
		},
	},
	{
		list: `select r.rolname || ': ' || count(*) from pg_class c join pg_namespace n on n.oid = c.relnamespace join pg_roles r on r.oid = c.relowner
			where c.relkind in ('r', 'p', 'v', 'm', 'S', 'f') and r.rolname <> current_user and ` + users + ` group by r.rolname order by 1`,
		tell: func(a *Account, name string) {
			a.Say(model.ImportWarning, "tables, views and sequences of a role of the source belong to the new owner, and views read as that one: "+oneLine(name))
		},
	},
	{
		list: `select s.spcname || ': ' || count(*) from pg_class c join pg_namespace n on n.oid = c.relnamespace join pg_tablespace s on s.oid = c.reltablespace
			where ` + users + ` group by s.spcname order by 1`,
		tell: func(a *Account, name string) {
			a.Say(model.ImportWarning, "tables and indexes of a tablespace of the source are in the only one here: "+oneLine(name))
		},
	},
	{
		since: 100000, list: "select subname::text from pg_subscription where subdbid = (select oid from pg_database where datname = current_database()) order by 1",
		tell: func(a *Account, name string) {
			a.flaw("SUBSCRIPTION "+name, errors.New("subscriptions need a superuser, which the owner of a database is not here"))
		},
	},
	{
		list: `select provider || ' (' || count(*) || ')' from pg_seclabel group by provider order by 1`,
		tell: func(a *Account, name string) {
			a.flaw("SECURITY LABELS "+name, errors.New("they need the module of their provider, which databases here do not load"))
		},
	},
	{
		before: 120000, list: "select n.nspname || '.' || c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.relkind = 'r' and c.relhasoids and " + users + " order by 1",
		tell: func(a *Account, name string) {
			a.flaw("TABLE DATA "+name, errors.New("the column oid is not copied: PostgreSQL 12 and newer has none that are hidden; make it an ordinary column in the source"))
		},
	},
	{
		list: `select r.rolname::text from pg_db_role_setting s join pg_roles r on r.oid = s.setrole
			where s.setdatabase = (select oid from pg_database where datname = current_database()) and r.rolname <> current_user order by 1`,
		tell: func(a *Account, name string) {
			a.Say(model.ImportWarning, fmt.Sprintf("the role %q of the source is not here: its settings in the database are left out", name))
		},
	},
}

// definers lists SECURITY DEFINER functions whose owner meets a condition.
func definers(condition string) string {
	return `select p.oid::regprocedure::text || ' of ' || r.rolname from pg_proc p join pg_namespace n on n.oid = p.pronamespace join pg_roles r on r.oid = p.proowner
		where p.prosecdef and ` + userSchema + member("pg_proc", "p") + ` and ` + condition + ` order by 1`
}

// ownsHere is a condition for the roles that the new owner replaces: the source's user and the owner of its database.
const ownsHere = ` (r.rolname = current_user or r.oid = (select d.datdba from pg_database d where d.datname = current_database())) `

// logLeftovers logs what is neither copied nor in pg_dump's archive.
func (c *copying) logLeftovers(ctx context.Context) error {
	for _, l := range leftovers {
		if c.number < l.since || l.before > 0 && c.number >= l.before {
			continue
		}
		names, err := list(ctx, c.conn, "look for what is not copied", pgx.RowTo[string], l.list)
		if err != nil {
			return sourceError{err}
		}
		for _, name := range names {
			l.tell(c.account, name)
		}
	}
	return nil
}
