package backup

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"holdfast/backup/wal/xlog"
)

// oldestServer is the first major version that has pg_backup_start.
const oldestServer = 15

// maxLabel is slightly less than PostgreSQL's MAXPGPATH.
const maxLabel = 1000

var errTablespace = errors.New("tablespaces cannot be backed up, move its tables to pg_default and drop it")

// server is the PostgreSQL side of a backup.
type server struct {
	conn *pgx.Conn

	version   string // "15.18"
	dir       string // data directory
	checksums bool
	timeline  uint32
	start     xlog.LSN
}

func checkLabel(label string) error {
	if len(label) > maxLabel || !utf8.ValidString(label) || strings.ContainsFunc(label, unicode.IsControl) {
		return fmt.Errorf("label %.40q: want at most %d bytes of text without control characters", label, maxLabel)
	}
	return nil
}

// begin reads the server's properties and starts a backup, which ends with the connection at the latest.
func (s *server) begin(ctx context.Context, label string) error {
	var number, block string
	var recovering bool
	err := s.conn.QueryRow(ctx, `select current_setting('server_version'), current_setting('server_version_num'),
		current_setting('data_directory'), current_setting('data_checksums') = 'on', current_setting('block_size'), pg_is_in_recovery()`,
	).Scan(&s.version, &number, &s.dir, &s.checksums, &block, &recovering)
	if err != nil {
		return fmt.Errorf("read server properties: %w", err)
	}
	if major, err := strconv.Atoi(number); err != nil || major/10000 < oldestServer {
		return fmt.Errorf("server is PostgreSQL %s; backups need %d or newer", s.version, oldestServer)
	}
	if block != strconv.Itoa(pageSize) || recovering {
		return fmt.Errorf("server has pages of %s bytes and is in recovery: %t; backups need %d and a primary", block, recovering, pageSize)
	}
	s.version, _, _ = strings.Cut(s.version, " ")
	if err := s.noTablespaces(ctx); err != nil {
		return err
	}
	return s.startBackup(ctx, label)
}

func (s *server) startBackup(ctx context.Context, label string) error {
	var start, segment string
	err := s.conn.QueryRow(ctx, "select lsn::text, pg_walfile_name(lsn) from pg_backup_start($1, fast => true) lsn", label).Scan(&start, &segment)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	if len(segment) != 24 {
		return fmt.Errorf("begin: the server reports the WAL segment %q", segment)
	}
	timeline, err := strconv.ParseUint(segment[:8], 16, 32)
	if err != nil {
		return fmt.Errorf("begin: the server reports the WAL segment %q", segment)
	}
	s.timeline = uint32(timeline)
	s.start, err = xlog.ParseLSN(start)
	return err
}

func (s *server) noTablespaces(ctx context.Context) error {
	var place string
	err := s.conn.QueryRow(ctx, `select pg_tablespace_location(oid) from pg_tablespace
		where spcname not in ('pg_default', 'pg_global') limit 1`).Scan(&place)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for tablespaces: %w", err)
	}
	return fmt.Errorf("the cluster has a tablespace at %s: %w", place, errTablespace)
}

// stopped is the result of pg_backup_stop.
type stopped struct {
	at            xlog.LSN
	label         string
	tablespaceMap string
}

// end ends the backup on the server. It fails if a tablespace was created during the backup.
func (s *server) end(ctx context.Context) (end stopped, err error) {
	var at string
	err = s.conn.QueryRow(ctx, "select lsn::text, labelfile, coalesce(spcmapfile, '') from pg_backup_stop(wait_for_archive => false)").
		Scan(&at, &end.label, &end.tablespaceMap)
	if err != nil {
		return end, fmt.Errorf("end: %w", err)
	}
	if end.at, err = xlog.ParseLSN(at); err != nil {
		return end, err
	}
	if !strings.Contains(end.label, fmt.Sprintf("\nSTART TIMELINE: %d\n", s.timeline)) {
		return end, fmt.Errorf("the backup label is not of timeline %d", s.timeline)
	}
	return end, s.noTablespaces(ctx)
}

// abandonWait bounds the time to end a failed backup.
const abandonWait = 5 * time.Second

// abandon closes the connection, which ends a started backup on the server.
func (s *server) abandon() {
	ctx, cancel := context.WithTimeout(context.Background(), abandonWait)
	defer cancel()
	conn := s.conn.PgConn()
	if !conn.IsClosed() {
		conn.Close(ctx)
	}
	<-conn.CleanupDone()
}
