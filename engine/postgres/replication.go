package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// replicationMark is the comment that identifies the role that may replicate,
// whatever its name.
const replicationMark = "holdfast: replication role"

// ReplicationSenders is how many clients can stream the changes of a database at a
// time.
const ReplicationSenders = 10

// ReplicationSettings returns the settings of a server whose changes can be
// streamed. keep is the most WAL, in bytes, that a slot retains for a client that
// does not read it. wal_keep_size covers the time until the receiver of the archive
// notices that a client has dropped the archive's slot: the role may drop any.
func ReplicationSettings(keep int64) map[string]string {
	return map[string]string{
		"wal_level":              "logical",
		"max_wal_senders":        fmt.Sprint(ReplicationSenders),
		"max_replication_slots":  fmt.Sprint(2 * ReplicationSenders),
		"wal_keep_size":          "256MB",
		"max_slot_wal_keep_size": fmt.Sprintf("%dMB", keep>>20),
	}
}

// replicationRole returns the statements that make the role that may replicate, or
// take the right from the one that there is. REPLICATION lets a role stream
// everything in the instance, also by BASE_BACKUP, so it is a role of its own with
// a password of its own. It reads the tables, for the first copy, as the read-only role does.
func (t Tenant) replicationRole() ([]string, error) {
	closeOthers := fmt.Sprintf(`DO $$ DECLARE r name; BEGIN
		FOR r IN SELECT rolname FROM pg_shdescription JOIN pg_roles ON objoid = oid
			WHERE classoid = 'pg_authid'::regclass AND description = %s AND rolname <> %s LOOP
			EXECUTE format('ALTER ROLE %%I %s PASSWORD NULL', r);
		END LOOP; END $$`, quoteLiteral(replicationMark), quoteLiteral(t.Replication), closedRole)
	if t.Replication == "" {
		return []string{closeOthers}, nil
	}
	verifier, err := scramVerifier(t.ReplicationPassword)
	if err != nil {
		return nil, err
	}
	r := quoteName(t.Replication)
	const rights = "LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE REPLICATION NOBYPASSRLS"
	return []string{
		closeOthers,
		fmt.Sprintf(`DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = %s) THEN CREATE ROLE %s %s; END IF; END $$`,
			quoteLiteral(t.Replication), r, closedRole),
		"COMMENT ON ROLE " + r + " IS " + quoteLiteral(replicationMark),
		"ALTER ROLE " + r + " " + rights + connectionLimit(t.replicationConnections()) + passwordClause(verifier),
		"ALTER ROLE " + r + " RESET ALL",
		"ALTER ROLE " + r + " IN DATABASE " + quoteName(t.Database) + " RESET ALL",
		"GRANT " + quoteName(t.ReadOnly) + " TO " + r,
		"GRANT CONNECT ON DATABASE " + quoteName(t.Database) + " TO " + r,
	}, nil
}

// replicationConnections counts the sessions that read the first copies besides those that
// stream. Sessions that stream take no slots of max_connections.
func (t Tenant) replicationConnections() int {
	if t.Connections == 0 {
		return 0
	}
	return ReplicationSenders + t.readerConnections()
}

// Slot is a replication slot of tenants.
type Slot struct {
	Name, Plugin string // a physical slot has no plugin
	Database     string // "" for a physical slot
	Temporary    bool
	Active       bool // a client is reading it
	// Lag is how much WAL the client has not confirmed, Retained how much the server
	// keeps for it, in bytes.
	Lag, Retained int64
	// Status is wal_status: reserved, extended, unreserved or lost.
	Status string
	// Safe is how much WAL can be written until the slot is lost, in bytes; nil
	// if that is unlimited, or it is lost.
	Safe *int64
}

// Lost reports whether the server no longer has what the slot's client needs.
func (s Slot) Lost() bool { return s.Status == "lost" }

// Slots returns the replication slots besides own, the appliance's. conn is the
// superuser's.
func Slots(ctx context.Context, conn *pgx.Conn, own string) ([]Slot, error) {
	rows, _ := conn.Query(ctx, `select slot_name::text, coalesce(plugin::text, ''), coalesce(database::text, ''), temporary, active,
		greatest(0, pg_wal_lsn_diff(now, coalesce(confirmed_flush_lsn, restart_lsn, now)))::bigint,
		greatest(0, pg_wal_lsn_diff(now, coalesce(restart_lsn, now)))::bigint, coalesce(wal_status, 'lost'), safe_wal_size
		from pg_replication_slots, pg_current_wal_lsn() now where slot_name <> $1 order by 1`, own)
	slots, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Slot])
	if err != nil {
		return nil, fmt.Errorf("list replication slots: %w", err)
	}
	return slots, nil
}

// Publication is a publication in a tenant's database.
type Publication struct {
	Name, Owner string
	AllTables   bool
	Tables      int // that it publishes
	// Unidentified are tables, as "schema.table", whose updates and deletes fail
	// because they have no replica identity.
	Unidentified []string
}

// MaxPublications is how many publications are listed.
const MaxPublications = 200

// Publications returns the publications of conn's database. conn is the
// superuser's.
func Publications(ctx context.Context, conn *pgx.Conn) ([]Publication, error) {
	rows, _ := conn.Query(ctx, `select pubname::text, pubowner::regrole::text, puballtables,
		(select count(*) from pg_publication_tables t where t.pubname = p.pubname)::int,
		array(select format('%I.%I', t.schemaname, t.tablename) from pg_publication_tables t
			join pg_class c on c.oid = format('%I.%I', t.schemaname, t.tablename)::regclass
			where t.pubname = p.pubname and (p.pubupdate or p.pubdelete) and (c.relreplident = 'n'
				or c.relreplident = 'd' and not exists (select from pg_index i where i.indrelid = c.oid and i.indisprimary))
			order by 1 limit 100)
		from pg_publication p order by 1 limit $1`, MaxPublications)
	publications, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Publication])
	if err != nil {
		return nil, fmt.Errorf("list publications: %w", err)
	}
	return publications, nil
}

// ErrNoSlot means that there is no such slot, ErrSlotActive that a client reads it.
var (
	ErrNoSlot     = errors.New("there is no such replication slot")
	ErrSlotActive = errors.New("a client reads the replication slot")
)

// DropSlot drops a tenant's slot; own is the appliance's. With force it ends the client that
// reads it first. conn is the superuser's.
func DropSlot(ctx context.Context, conn *pgx.Conn, own, name string, force bool) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		var pid *int32
		err := conn.QueryRow(ctx, "select active_pid from pg_replication_slots where slot_name = $1 and slot_name <> $2", name, own).Scan(&pid)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return ErrNoSlot
		case err != nil:
			return fmt.Errorf("look for the replication slot: %w", err)
		case pid == nil:
			_, err := conn.Exec(ctx, "select pg_drop_replication_slot($1)", name)
			if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == "55006" && force { // object_in_use: a client has come back
				continue
			}
			if err != nil {
				return fmt.Errorf("drop replication slot: %w", err)
			}
			return nil
		case !force:
			return ErrSlotActive
		}
		if _, err := conn.Exec(ctx, "select pg_terminate_backend($1)", *pid); err != nil {
			return fmt.Errorf("end the client of the replication slot: %w", err)
		}
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return fmt.Errorf("end the client of the replication slot: %w", err)
		}
	}
}

// FreeOwnSlot ends a tenant's session that holds the appliance's own slot: a role that
// may replicate can read any slot, and would stop the archive with it.
func FreeOwnSlot(ctx context.Context, conn *pgx.Conn, own string) (ended bool, err error) {
	err = conn.QueryRow(ctx, `select coalesce(bool_or(pg_terminate_backend(active_pid)), false) from pg_replication_slots s
		join pg_stat_activity a on a.pid = s.active_pid where slot_name = $1 and a.usename <> $2`, own, Superuser).Scan(&ended)
	if err != nil {
		return false, fmt.Errorf("free the archive's replication slot: %w", err)
	}
	return ended, nil
}

// EndSessionsOf ends the sessions of a role that can no longer log in, and returns once they have
// ended. conn is the superuser's.
func EndSessionsOf(ctx context.Context, conn *pgx.Conn, role string) error {
	for {
		var left int
		err := conn.QueryRow(ctx, "select count(pg_terminate_backend(pid)) from pg_stat_activity where usename = $1", role).Scan(&left)
		if err != nil {
			return fmt.Errorf("end the sessions of %s: %w", role, err)
		}
		if left == 0 {
			return nil
		}
		if err := sleep(ctx, 10*time.Millisecond); err != nil {
			return fmt.Errorf("end the sessions of %s: %w", role, err)
		}
	}
}

// SlotLimit returns how much WAL a slot may retain, in bytes; 0 for no limit.
func SlotLimit(ctx context.Context, conn *pgx.Conn) (limit int64, err error) {
	err = conn.QueryRow(ctx, "select greatest(0, setting::bigint) << 20 from pg_settings where name = 'max_slot_wal_keep_size'").Scan(&limit)
	if err != nil {
		return 0, fmt.Errorf("read the limit of replication slots: %w", err)
	}
	return limit, nil
}
