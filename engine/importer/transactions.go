package importer

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/model"
	"holdfast/internal/ctxio"
)

// openTransactions lists, as text, the transactions of the database that have changed something and have not ended. The
// locks on their numbers show those of other users too. Autovacuum has no user, and changes no rows.
const openTransactions = `select 'the prepared transaction ' || quote_literal(gid) from pg_prepared_xacts where database = current_database()
	union all
	select 'one of the user ' || quote_ident(usename::text) || ', process ' || pid || case application_name when '' then '' else ', program ' || quote_ident(application_name) end
	from pg_stat_activity where datname = current_database() and usename is not null and pid <> pg_backend_pid()
	and pid in (select l.pid from pg_locks l where l.locktype = 'transactionid' and l.mode = 'ExclusiveLock' and l.granted) order by 1`

func listOpen(ctx context.Context, conn *pgx.Conn) ([]string, error) {
	return list(ctx, conn, "list transactions", pgx.RowTo[string], openTransactions)
}

// transactionPatience is how long a cutover waits for transactions that are about to end.
const transactionPatience = 2 * time.Second

// awaitTransactions refuses a cutover while transactions at the source have not ended: what they commit after the mark
// would not be in the new database.
func (f *Follower) awaitTransactions(ctx context.Context, conn *pgx.Conn) error {
	for began := time.Now(); ; {
		open, err := listOpen(ctx, conn)
		if err != nil {
			return f.explain(ctx, err)
		}
		if len(open) == 0 {
			return nil
		}
		if time.Since(began) > transactionPatience {
			return model.Errorf(model.CodeConflict, "the source's database has %s open, and what they commit after the cutover would be lost: %s; "+
				"stop the programs that write there, commit or roll back what they left, and cut over again", model.Count(len(open), "transaction"), few(open))
		}
		if err := ctxio.Sleep(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}
