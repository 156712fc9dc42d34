package backup

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"
)

// oldestServer is the first major version whose BASE_BACKUP puts everything
// in one COPY stream.
const oldestServer = 15

// maxLabel is a little less than PostgreSQL's MAXPGPATH.
const maxLabel = 1000

// baseBackupCommand is the replication command for a backup named label.
//
// WAL comes with the files, so nobody has to wait until it is archived (WAIT).
func baseBackupCommand(label string) (string, error) {
	if len(label) > maxLabel || !utf8.ValidString(label) || strings.ContainsFunc(label, unicode.IsControl) {
		return "", fmt.Errorf("label %.40q: want at most %d bytes of text without control characters", label, maxLabel)
	}
	return "BASE_BACKUP (LABEL " + quoteLiteral(label) + ", PROGRESS true, CHECKPOINT 'fast', WAL true, WAIT false, " +
		"MANIFEST 'yes', MANIFEST_CHECKSUMS 'CRC32C', VERIFY_CHECKSUMS true)", nil
}

// quoteLiteral quotes a string for the replication grammar, where a backslash
// means itself.
func quoteLiteral(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// serverVersion returns the server's version, if this package can work with it.
func serverVersion(conn *pgconn.PgConn) (string, error) {
	version := conn.ParameterStatus("server_version")
	digits := strings.IndexFunc(version, func(r rune) bool { return !unicode.IsDigit(r) })
	if digits < 0 {
		digits = len(version)
	}
	major, err := strconv.Atoi(version[:digits])
	if err != nil {
		return "", fmt.Errorf("server says its version is %q", version)
	}
	if major < oldestServer {
		return "", fmt.Errorf("server is PostgreSQL %s; backups need %d or newer", version, oldestServer)
	}
	return version, nil
}
