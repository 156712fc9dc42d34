package cli_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/cli/client"
)

// pause is the maximum time between two rows of a writer.
const pause = 30 * time.Millisecond

// write calls attempt repeatedly until the database is gone or the run ends,
// but never during a check. While the database rests, it calls leave instead.
func (c *chaos) write(db *chaosDatabase, attempt func(context.Context), leave func()) {
	for {
		select {
		case <-c.ended:
			leave()
			return
		case <-time.After(rand.N(pause)):
		}
		if db.isGone() {
			leave()
			return
		}
		if db.rests() {
			leave()
			continue
		}
		ctx, cancel := context.WithTimeout(c.t.Context(), chaosPatience)
		c.quiet.RLock()
		attempt(ctx)
		c.quiet.RUnlock()
		cancel()
	}
}

// connectionURL requests a database's connection URL.
func (c *chaos) connectionURL(ctx context.Context, db *chaosDatabase) (string, error) {
	connection, err := c.clients[0].GetDatabaseConnection(ctx, db.id, client.ConnectionOptions{})
	return connection.ConnectionURL, err
}

// begin returns the number of a row that is about to be written, and a function
// that records its commit.
func (c *chaos) begin(db *chaosDatabase) (n int, acknowledge func()) {
	db.mu.Lock()
	defer db.mu.Unlock()
	rows := db.now
	n = rows.begin()
	return n, func() {
		db.mu.Lock()
		defer db.mu.Unlock()
		rows.acknowledge(n)
		c.count("rows")
	}
}

// writeByDriver writes rows over a pgx connection, and sets marks.
func (c *chaos) writeByDriver(db *chaosDatabase) {
	var conn *pgx.Conn
	c.write(db, func(ctx context.Context) {
		if conn == nil {
			if conn = c.openLedger(ctx, db); conn == nil {
				return
			}
		}
		n, acknowledge := c.begin(db)
		_, err := conn.Exec(ctx, insertRow(n))
		if err == nil {
			acknowledge()
			if rand.IntN(20) == 0 {
				err = db.mark(ctx, conn)
			}
		}
		if err != nil {
			conn.Close(ctx)
			conn = nil
		}
	}, func() {
		if conn != nil {
			conn.Close(context.WithoutCancel(c.t.Context()))
			conn = nil
		}
	})
}

func (c *chaos) openLedger(ctx context.Context, db *chaosDatabase) *pgx.Conn {
	url, err := c.connectionURL(ctx, db)
	if err != nil {
		return nil
	}
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil
	}
	if _, err := conn.Exec(ctx, makeLedger); err != nil {
		conn.Close(ctx)
		return nil
	}
	return conn
}

// mark records a point in time. It reads what is certainly committed before it
// asks the server for the time, and what is possibly committed afterwards.
func (d *chaosDatabase) mark(ctx context.Context, conn *pgx.Conn) error {
	d.mu.Lock()
	rows, before, moving := d.now, d.now.copy(), d.moving
	d.mu.Unlock()
	m := mark{rows: before}
	if err := conn.QueryRow(ctx, "select pg_current_wal_insert_lsn()::text, clock_timestamp()").Scan(&m.lsn, &m.at); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if moving || d.moving || d.now != rows || m.at.Before(d.markedFrom) {
		return nil
	}
	before.grow(len(d.now.rows), possible)
	before.of = fmt.Sprintf(" of the mark of %s, %s,", m.at.UTC().Format(time.RFC3339Nano), m.lsn)
	const kept = 20
	if d.marks = append(d.marks, m); len(d.marks) > kept {
		d.marks = d.marks[1:]
	}
	return nil
}

// psql is a psql session that receives statements, one a line.
type psql struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines *bufio.Scanner
}

func startPsql(ctx context.Context, url string) (*psql, error) {
	cmd := exec.CommandContext(ctx, "psql", "--no-psqlrc", "--quiet", "--no-password")
	cmd.Env = append(os.Environ(), "PGOPTIONS=", "PGCONNECT_TIMEOUT=20")
	cmd.Args = append(cmd.Args, url)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &psql{cmd, stdin, bufio.NewScanner(stdout)}, cmd.Start()
}

// do executes a statement and reports whether psql confirmed it.
func (p *psql) do(statement string) bool {
	if _, err := fmt.Fprintf(p.stdin, "%s\n\\echo :ERROR\n", statement); err != nil {
		return false
	}
	return p.lines.Scan() && p.lines.Text() == "false"
}

func (p *psql) close() {
	p.stdin.Close()
	_ = p.cmd.Wait() // its exit code does not matter: all statements are recorded
}

// writeByPsql writes rows as a user's script would.
func (c *chaos) writeByPsql(db *chaosDatabase) {
	var session *psql
	c.write(db, func(ctx context.Context) {
		if session == nil {
			url, err := c.connectionURL(ctx, db)
			if err != nil {
				return
			}
			if session, err = startPsql(c.t.Context(), url); err != nil {
				c.t.Errorf("start psql: %v", err)
				session = nil
				return
			}
		}
		n, acknowledge := c.begin(db)
		if session.do(insertRow(n)) {
			acknowledge()
			return
		}
		session.close()
		session = nil
		time.Sleep(100 * time.Millisecond)
	}, func() {
		if session != nil {
			session.close()
			session = nil
		}
	})
}
