package backup

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"holdfast/backup/repository"
)

// serverManifestFile is the name that stock tools (pg_verifybackup) expect.
const serverManifestFile = "backup_manifest"

// writeServerManifest writes the backup_manifest that pg_basebackup would have
// written. Like PostgreSQL's, it omits pg_wal and itself.
func writeServerManifest(w io.Writer, m *repository.Manifest) error {
	s := &serverManifest{w: bufio.NewWriter(w), hash: sha256.New()}
	s.print("{ \"PostgreSQL-Backup-Manifest-Version\": %d,\n", manifestVersion(m.Backup.PostgresVersion))
	if manifestVersion(m.Backup.PostgresVersion) > 1 {
		s.print("\"System-Identifier\": %d,\n", m.Backup.SystemIdentifier)
	}
	s.print("\"Files\": [")
	for i := range m.Entries {
		if e := &m.Entries[i]; !e.IsDir() {
			s.file(e.Path, e.Size, e.ModTime, e.CRC32C)
		}
	}
	for _, f := range ownFiles(m) {
		s.file(f.name, int64(len(f.content)), m.Backup.CompletedAt, crc32.Checksum([]byte(f.content), castagnoli))
	}
	s.print("\n],\n\"WAL-Ranges\": [\n")
	s.print("{ \"Timeline\": %d, \"Start-LSN\": %q, \"End-LSN\": %q }\n],\n", m.Backup.Timeline, m.Backup.StartLSN, m.Backup.StopLSN)
	fmt.Fprintf(s.w, "\"Manifest-Checksum\": %q}\n", hex.EncodeToString(s.hash.Sum(nil)))
	return s.w.Flush() // a bufio.Writer returns its first error
}

// manifestVersion returns 1 for PostgreSQL 13 to 16 and 2 since 17.
func manifestVersion(postgres string) int {
	major, _, _ := strings.Cut(postgres, ".")
	if n, err := strconv.Atoi(major); err == nil && n < 17 {
		return 1
	}
	return 2
}

// serverManifest writes a backup_manifest, whose last line has the SHA-256 of everything before it.
type serverManifest struct {
	w     *bufio.Writer
	hash  hash.Hash
	files int
}

func (s *serverManifest) print(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	s.hash.Write([]byte(text))
	s.w.WriteString(text)
}

func (s *serverManifest) file(name string, size int64, modTime time.Time, crc uint32) {
	if s.files++; s.files > 1 {
		s.print(",")
	}
	key, value := "Path", name
	if !utf8.ValidString(name) {
		key, value = "Encoded-Path", hex.EncodeToString([]byte(name))
	}
	quoted, _ := json.Marshal(value) // a string always encodes
	// PostgreSQL prints the bytes of a checksum in memory order, which is little-endian on every supported machine.
	var sum [4]byte
	binary.LittleEndian.PutUint32(sum[:], crc)
	s.print("\n{ %q: %s, \"Size\": %d, \"Last-Modified\": \"%s GMT\", \"Checksum-Algorithm\": \"CRC32C\", \"Checksum\": \"%x\" }",
		key, quoted, size, modTime.UTC().Format("2006-01-02 15:04:05"), sum)
}

// ownFile is a file that a restore needs and the server does not have.
type ownFile struct{ name, content string }

func ownFiles(m *repository.Manifest) []ownFile {
	files := []ownFile{{"backup_label", m.Backup.BackupLabel}}
	if m.Backup.TablespaceMap != "" {
		files = append(files, ownFile{"tablespace_map", m.Backup.TablespaceMap})
	}
	return files
}
