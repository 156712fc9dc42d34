package postgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
)

// LockedSession is a tenant's session that waits for others, or that others wait for.
type LockedSession struct {
	Session
	// Depth is 0 for a session that waits for no session of a tenant, and else one more than
	// that of the session it is listed below.
	Depth int
	// BlockedBy are the tenants' sessions that it waits for, and Other the number of other
	// processes, such as a vacuum or a prepared transaction.
	BlockedBy []SessionID
	Other     int
	// Mode and Kind are those of the lock it waits for, such as AccessExclusiveLock on a
	// relation, and Relation the name of that table or index; "" if it waits for none.
	Mode, Kind, Relation string
	blockers             []int32
}

// Locks returns the tenants' sessions, in whatever database, that wait for locks, and those that they
// wait for, in the order of a tree: below each session are those that wait for it. A session
// that waits for several is below one of them. In a deadlock, which the server ends after a
// second, the first session is the root. conn is the superuser's, in the tenant's database.
func Locks(ctx context.Context, conn *pgx.Conn) ([]LockedSession, error) {
	rows, _ := conn.Query(ctx, `select a.pid, (extract(epoch from a.backend_start) * 1000000)::bigint, a.usename::text, a.datname::text, coalesce(a.application_name, ''),
		coalesce(host(a.client_addr), ''), coalesce(a.state, ''), a.backend_start, a.state_change, a.xact_start,
		coalesce(a.wait_event_type, ''), coalesce(a.wait_event, ''), `+readableQuery+`,
		pg_blocking_pids(a.pid), coalesce(l.mode, ''), coalesce(l.locktype, ''), coalesce(n.nspname || '.' || c.relname, '')
		from (select * from pg_stat_activity where `+ofTenants+` order by backend_start, pid limit $3) a
		left join lateral (select * from pg_locks l where l.pid = a.pid and not l.granted limit 1) l on true
		left join pg_class c on c.oid = l.relation and l.database = (select oid from pg_database where datname = current_database())
		left join pg_namespace n on n.oid = c.relnamespace
		order by a.backend_start, a.pid`, ownRoles(), maxQuery, MaxSessions)
	sessions, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s LockedSession, err error) {
		return s, row.Scan(&s.PID, &s.Started, &s.User, &s.Database, &s.Application, &s.Address,
			&s.State, &s.StartedAt, &s.StateSince, &s.TransactionSince, &s.WaitType, &s.Wait, &s.Query,
			&s.blockers, &s.Mode, &s.Kind, &s.Relation)
	})
	if err != nil {
		return nil, fmt.Errorf("list locks: %w", err)
	}
	return lockTree(sessions), nil
}

// lockTree orders the sessions that block or are blocked.
func lockTree(sessions []LockedSession) []LockedSession {
	byPID := map[int32]int{}
	for i, s := range sessions {
		byPID[s.PID] = i
	}
	waiting := make([][]int, len(sessions)) // for each session
	for i := range sessions {
		s := &sessions[i]
		slices.Sort(s.blockers)
		for _, pid := range slices.Compact(s.blockers) { // the members of a parallel query count as their leader
			if by, known := byPID[pid]; known {
				s.BlockedBy = append(s.BlockedBy, sessions[by].SessionID)
				waiting[by] = append(waiting[by], i)
			} else {
				s.Other++
			}
		}
	}
	var tree []LockedSession
	listed := map[int]bool{}
	var list func(i, depth int)
	list = func(i, depth int) {
		if listed[i] {
			return
		}
		listed[i] = true
		sessions[i].Depth = depth
		tree = append(tree, sessions[i])
		for _, w := range waiting[i] {
			list(w, depth+1)
		}
	}
	for _, roots := range []bool{true, false} { // then those of a cycle
		for i, s := range sessions {
			involved := len(waiting[i]) > 0 || len(s.blockers) > 0
			if involved && (!roots || len(s.BlockedBy) == 0) {
				list(i, 0)
			}
		}
	}
	return tree
}
