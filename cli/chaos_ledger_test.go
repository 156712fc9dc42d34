package cli_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// fate is what is known of a row.
type fate byte

const (
	absent   fate = iota // it must not exist
	possible             // unknown
	present              // it must exist
)

// ledger is what is known of the rows written to a database, by number from 1.
type ledger struct {
	of   string // the moment that the rows are of, for messages
	rows []fate
	// closed is the last number certainly written here before other data
	// replaced it; 0 while it is in use.
	closed int
}

func (l *ledger) copy() *ledger { return &ledger{rows: append([]fate(nil), l.rows...)} }

// grow extends the ledger to number n; new rows have the fate f.
func (l *ledger) grow(n int, f fate) {
	for len(l.rows) < n {
		l.rows = append(l.rows, f)
	}
}

// begin returns the number of a row that is about to be written.
func (l *ledger) begin() int {
	l.rows = append(l.rows, possible)
	return len(l.rows)
}

// acknowledge records that a row was committed.
func (l *ledger) acknowledge(n int) {
	if l.closed == 0 || n <= l.closed {
		l.rows[n-1] = present
	}
}

// replaced returns the ledger after other data replaces l's. Numbers above from
// were written during the switch, to either.
func (l *ledger) replaced(by *ledger, from int) *ledger {
	next := by.copy()
	next.grow(from, absent)
	next.grow(len(l.rows), possible)
	l.closed = from
	l.doubt(from)
	return next
}

// doubt makes the rows above number from possible ones.
func (l *ledger) doubt(from int) {
	for n := from; n < len(l.rows); n++ {
		l.rows[n] = possible
	}
}

// compare returns the differences from the rows that were found, by number.
func (l *ledger) compare(found map[int]bool) error {
	var lost, undead []int
	for i, f := range l.rows {
		switch there := found[i+1]; {
		case f == present && !there:
			lost = append(lost, i+1)
		case f == absent && there:
			undead = append(undead, i+1)
		}
	}
	for n := range found {
		if n < 1 || n > len(l.rows) {
			undead = append(undead, n)
		}
	}
	if len(lost)+len(undead) > 0 {
		return fmt.Errorf("of %d rows%s %d acknowledged are lost (%s), and %d are there that must not be (%s)",
			len(l.rows), l.of, len(lost), some(lost), len(undead), some(undead))
	}
	return nil
}

// learn resolves possible rows with those found.
func (l *ledger) learn(found map[int]bool) {
	for i := range l.rows {
		l.rows[i] = absent
		if found[i+1] {
			l.rows[i] = present
		}
	}
}

func some(numbers []int) string {
	const few = 12
	if len(numbers) <= few {
		return fmt.Sprint(numbers)
	}
	return fmt.Sprintf("%v … %v", numbers[:few], numbers[len(numbers)-1])
}

// undefinedTable is PostgreSQL's SQLSTATE for a table that does not exist.
const undefinedTable = "42P01"

// The tables of every database: rows, and their count. One statement changes
// both, so that a partial change is visible.
const makeLedger = `
create table if not exists ledger (n int primary key, pad text not null);
create table if not exists tally (total bigint not null);
insert into tally select 0 where not exists (select from tally)`

func insertRow(n int) string {
	return fmt.Sprintf(`with row as (insert into ledger values (%d, repeat(md5('%[1]d'), 8)) returning 1) update tally set total = total + (select count(*) from row);`, n)
}

// readLedger returns the numbers of the rows, and checks that each is intact. A
// database from before the tables were created has none.
func readLedger(ctx context.Context, url string) (map[int]bool, error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	defer conn.Close(ctx)
	found := map[int]bool{}
	rows, _ := conn.Query(ctx, "select n, pad = repeat(md5(n::text), 8) from ledger")
	var n int
	var whole bool
	_, err = pgx.ForEachRow(rows, []any{&n, &whole}, func() error {
		if !whole {
			return fmt.Errorf("row %d is damaged", n)
		}
		found[n] = true
		return nil
	})
	if refusal, ok := errors.AsType[*pgconn.PgError](err); ok && refusal.Code == undefinedTable {
		return found, nil
	}
	if err != nil {
		return nil, err
	}
	var total int
	err = conn.QueryRow(ctx, "select coalesce(sum(total), 0) from tally").Scan(&total)
	if refusal, ok := errors.AsType[*pgconn.PgError](err); ok && refusal.Code == undefinedTable && len(found) == 0 {
		return found, nil
	}
	if err == nil && total != len(found) {
		err = fmt.Errorf("%d rows are counted, and %d are there: a statement was done by half", total, len(found))
	}
	return found, err
}
