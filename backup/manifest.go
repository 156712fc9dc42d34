package backup

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// manifestFile is the name stock tools (pg_verifybackup) look for.
const manifestFile = "backup_manifest"

// newestManifestVersion is the newest one known: 1 came with PostgreSQL 13, 2 with 17.
const newestManifestVersion = 2

// manifestReader reads a backup_manifest as a stream: it may list millions of
// files.
type manifestReader struct {
	json  *json.Decoder
	visit func(name string, f fileSum) error

	version  int
	ranges   []walRange
	checksum string
}

// readManifest reads r to its end, calls visit for each file it lists, and
// checks the manifest's own checksum. It returns the WAL the backup needs.
func readManifest(r io.Reader, visit func(name string, f fileSum) error) (walRange, error) {
	hash := newManifestHash()
	tee := io.TeeReader(r, hash)
	m := &manifestReader{json: json.NewDecoder(tee), visit: visit}
	if err := m.read(); err != nil {
		return walRange{}, fmt.Errorf("read manifest: %w", err)
	}
	if _, err := io.Copy(io.Discard, tee); err != nil {
		return walRange{}, fmt.Errorf("read manifest: %w", err)
	}
	if got := hash.sum(); got != m.checksum {
		return walRange{}, fmt.Errorf("manifest is damaged: its checksum is %s, and it says %q", got, m.checksum)
	}
	if m.version < 1 || m.version > newestManifestVersion {
		return walRange{}, fmt.Errorf("manifest has version %d, and this program knows 1 to %d", m.version, newestManifestVersion)
	}
	if len(m.ranges) != 1 {
		return walRange{}, fmt.Errorf("manifest has %d WAL ranges, want one: the server changed its timeline meanwhile", len(m.ranges))
	}
	return m.ranges[0], nil
}

func (m *manifestReader) read() error {
	if err := m.delimiter('{'); err != nil {
		return err
	}
	for m.json.More() {
		key, err := m.json.Token()
		if err != nil {
			return err
		}
		if err := m.value(key); err != nil {
			return err
		}
	}
	return m.delimiter('}')
}

func (m *manifestReader) value(key json.Token) error {
	switch key {
	case "PostgreSQL-Backup-Manifest-Version":
		return m.json.Decode(&m.version)
	case "Files":
		return m.each(m.file)
	case "WAL-Ranges":
		return m.each(m.walRange)
	case "Manifest-Checksum":
		return m.json.Decode(&m.checksum)
	default: // System-Identifier, and whatever comes later
		return m.json.Decode(new(json.RawMessage))
	}
}

// each calls read for each element of an array.
func (m *manifestReader) each(read func() error) error {
	if err := m.delimiter('['); err != nil {
		return err
	}
	for m.json.More() {
		if err := read(); err != nil {
			return err
		}
	}
	return m.delimiter(']')
}

func (m *manifestReader) delimiter(want json.Delim) error {
	token, err := m.json.Token()
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	if err != nil {
		return err
	}
	if token != want {
		return fmt.Errorf("%v where %v belongs", token, want)
	}
	return nil
}

func (m *manifestReader) file() error {
	var entry struct {
		Path        string
		EncodedPath string `json:"Encoded-Path"` // hex, for names that are not UTF-8
		Size        int64
		Algorithm   string `json:"Checksum-Algorithm"`
		Checksum    string
	}
	if err := m.json.Decode(&entry); err != nil {
		return err
	}
	name := entry.Path
	if entry.EncodedPath != "" {
		decoded, err := hex.DecodeString(entry.EncodedPath)
		if err != nil {
			return fmt.Errorf("name %q: %w", entry.EncodedPath, err)
		}
		name = string(decoded)
	}
	crc, err := hex.DecodeString(entry.Checksum)
	if err != nil || len(crc) != 4 || entry.Algorithm != "CRC32C" {
		return fmt.Errorf("%s has no CRC32C checksum but %s %q", name, entry.Algorithm, entry.Checksum)
	}
	// PostgreSQL prints the bytes as they lie in its memory: little-endian on
	// every machine this program is built for.
	return m.visit(name, fileSum{size: entry.Size, crc32c: binary.LittleEndian.Uint32(crc)})
}

func (m *manifestReader) walRange() error {
	var entry struct {
		Timeline int
		StartLSN string `json:"Start-LSN"`
		EndLSN   string `json:"End-LSN"`
	}
	if err := m.json.Decode(&entry); err != nil {
		return err
	}
	start, err := parseLSN(entry.StartLSN)
	if err != nil {
		return err
	}
	stop, err := parseLSN(entry.EndLSN)
	if err != nil {
		return err
	}
	m.ranges = append(m.ranges, walRange{timeline: entry.Timeline, start: start, stop: stop})
	return nil
}
