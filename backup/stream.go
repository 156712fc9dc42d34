package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// stream is the server's answer to BASE_BACKUP, in PostgreSQL 15 and newer:
// a row with start LSN and timeline; a row for each tablespace; one COPY stream
// with the archives and the manifest; a row with stop LSN and timeline.
type stream struct {
	archive, manifest io.Writer
	sizeKnown         func(bytes int64) // an estimate of the archive's size

	sets     int // result sets begun
	started  position
	stopped  position
	current  io.Writer // where COPY data goes
	archives int
	warnings []string
}

// position is a row of LSN and timeline.
type position struct {
	at       lsn
	timeline int
}

// maxWarnings is how many of the server's warnings an error repeats.
const maxWarnings = 5

// receive reads the whole answer. It returns when ctx ends, too; conn is then
// of no use any more.
func (s *stream) receive(ctx context.Context, conn *pgconn.PgConn) error {
	// Once for all messages: ReceiveMessage would set up its own watch for each.
	stop := context.AfterFunc(ctx, func() { conn.Conn().SetDeadline(time.Unix(1, 0)) })
	defer stop()
	for {
		msg, err := conn.ReceiveMessage(context.Background())
		if err == nil {
			err = s.message(msg)
		}
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		if errors.Is(err, errEnd) {
			return s.complete()
		}
		if err != nil {
			return err
		}
	}
}

// errEnd ends the loop over messages.
var errEnd = errors.New("end of answer")

func (s *stream) message(msg pgproto3.BackendMessage) error {
	switch msg := msg.(type) {
	case *pgproto3.RowDescription:
		s.sets++
	case *pgproto3.DataRow:
		return s.row(msg.Values)
	case *pgproto3.CopyData:
		return s.copyData(msg.Data)
	case *pgproto3.NoticeResponse:
		if len(s.warnings) < maxWarnings && msg.SeverityUnlocalized == "WARNING" {
			s.warnings = append(s.warnings, msg.Message)
		}
	case *pgproto3.ErrorResponse:
		return s.serverError(pgconn.ErrorResponseToPgError(msg))
	case *pgproto3.ReadyForQuery:
		return errEnd
	}
	return nil
}

// serverError adds the warnings before the error: they name the damaged file
// and block where the error only counts them.
func (s *stream) serverError(err error) error {
	if len(s.warnings) == 0 {
		return err
	}
	return fmt.Errorf("%w (%s)", err, strings.Join(s.warnings, "; "))
}

func (s *stream) row(values [][]byte) (err error) {
	switch s.sets {
	case 1:
		s.started, err = parsePosition(values)
	case 2:
		err = s.tablespace(values)
	case 3:
		s.stopped, err = parsePosition(values)
	}
	return err
}

func parsePosition(values [][]byte) (p position, err error) {
	if len(values) < 2 {
		return p, errors.New("server answered a row that is not an LSN and a timeline")
	}
	if p.at, err = parseLSN(string(values[0])); err != nil {
		return p, err
	}
	p.timeline, err = strconv.Atoi(string(values[1]))
	return p, err
}

// tablespace reads a row of OID, location, size in KiB; the data directory's
// has neither OID nor location.
func (s *stream) tablespace(values [][]byte) error {
	if len(values) < 3 {
		return errors.New("server answered a row that is not a tablespace")
	}
	if values[0] != nil {
		return fmt.Errorf("the cluster has a tablespace at %s: tablespaces cannot be backed up, move its tables to pg_default and drop it", values[1])
	}
	if kib, err := strconv.ParseInt(string(values[2]), 10, 64); err == nil {
		s.sizeKnown(kib << 10)
	}
	return nil
}

// copyData reads one message of the COPY stream; its first byte is its kind.
func (s *stream) copyData(data []byte) error {
	if len(data) == 0 {
		return errors.New("server sent an empty message")
	}
	kind, data := data[0], data[1:]
	switch kind {
	case 'n':
		return s.newArchive(data)
	case 'm':
		s.current = s.manifest
	case 'd':
		if s.current == nil {
			return errors.New("server sent data before it said of what")
		}
		_, err := s.current.Write(data)
		return err
	case 'p': // progress, which we count ourselves
	default:
		return fmt.Errorf("server sent a message of the unknown kind %q", kind)
	}
	return nil
}

// newArchive begins the data directory's archive; there is no other.
func (s *stream) newArchive(data []byte) error {
	name, _, _ := bytes.Cut(data, []byte{0})
	if s.archives++; s.archives > 1 {
		return fmt.Errorf("server sent the archive %q of a tablespace", name)
	}
	s.current = s.archive
	return nil
}

func (s *stream) complete() error {
	if s.sets != 3 || s.archives != 1 || s.current != s.manifest {
		return errors.New("server ended its answer before it was complete")
	}
	return nil
}
