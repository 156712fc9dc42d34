package backup

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// manifestOf makes a manifest as PostgreSQL prints it, from lines of files.
func manifestOf(version int, files ...string) string {
	body := fmt.Sprintf("{ \"PostgreSQL-Backup-Manifest-Version\": %d,\n\"Files\": [\n%s\n],\n"+
		"\"WAL-Ranges\": [\n{ \"Timeline\": 1, \"Start-LSN\": \"0/2000028\", \"End-LSN\": \"0/2000100\" }\n],\n",
		version, strings.Join(files, ",\n"))
	return fmt.Sprintf("%s\"Manifest-Checksum\": \"%x\"}\n", body, sha256.Sum256([]byte(body)))
}

// fileLine is one file's line.
func fileLine(name, content string) string {
	var crc [4]byte
	binary.LittleEndian.PutUint32(crc[:], crc32.Checksum([]byte(content), castagnoli))
	return fmt.Sprintf(`{ "Path": "%s", "Size": %d, "Last-Modified": "2026-01-01 00:00:00 GMT", "Checksum-Algorithm": "CRC32C", "Checksum": "%x" }`,
		name, len(content), crc)
}

func readAll(r io.Reader) (contents, walRange, error) {
	files := contents{}
	wal, err := readManifest(r, files.add)
	return files, wal, err
}

// TestManifestChecksumOrder pins the byte order by a line of a real manifest:
// PostgreSQL 15's for a file that holds "15\n".
func TestManifestChecksumOrder(t *testing.T) {
	line := `{ "Path": "PG_VERSION", "Size": 3, "Last-Modified": "2026-11-21 05:00:00 GMT", "Checksum-Algorithm": "CRC32C", "Checksum": "8a744722" }`
	files, _, err := readAll(strings.NewReader(manifestOf(1, line)))
	if err != nil {
		t.Fatal(err)
	}
	want := contents{"PG_VERSION": {size: 3, crc32c: crc32.Checksum([]byte("15\n"), castagnoli)}}
	if diff := cmp.Diff(want, files, cmp.AllowUnexported(fileSum{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestManifest(t *testing.T) {
	encoded := strings.Replace(fileLine(hex.EncodeToString([]byte("base/\xff")), "c"), `"Path"`, `"Encoded-Path"`, 1)
	text := manifestOf(2, fileLine("base/1/a", "a"), fileLine(`with \"quotes\"`, ""), encoded)
	text = strings.Replace(text, "\"Files\"", "\"System-Identifier\": 7654321,\n\"Files\"", 1)
	body := text[:strings.LastIndex(strings.TrimSuffix(text, "\n"), "\n")+1]
	text = fmt.Sprintf("%s\"Manifest-Checksum\": \"%x\"}\n", body, sha256.Sum256([]byte(body)))
	for name, r := range map[string]io.Reader{
		"whole":      strings.NewReader(text),
		"by byte":    iotest.OneByteReader(strings.NewReader(text)),
		"by halves":  iotest.HalfReader(strings.NewReader(text)),
		"data & EOF": iotest.DataErrReader(strings.NewReader(text)),
	} {
		files, wal, err := readAll(r)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(files) != 3 || files["base/\xff"].size != 1 || files[`with "quotes"`].size != 0 {
			t.Errorf("%s: files %v", name, files)
		}
		if wal.String() != "0/2000028 to 0/2000100 on timeline 1" {
			t.Errorf("%s: WAL %v", name, wal)
		}
	}
}

func TestManifestRefuses(t *testing.T) {
	good := manifestOf(1, fileLine("a", "a"))
	for name, test := range map[string]struct{ text, want string }{
		"changed":       {strings.Replace(good, `"a"`, `"b"`, 1), "damaged"},
		"cut":           {good[:len(good)/2], "EOF"},
		"empty":         {"", "EOF"},
		"more":          {good + "{}\n", "damaged"},
		"newer":         {manifestOf(3, fileLine("a", "a")), "version 3"},
		"no version":    {manifestOf(0, fileLine("a", "a")), "version 0"},
		"twice":         {manifestOf(1, fileLine("a", "a"), fileLine("a", "a")), "twice"},
		"no checksum":   {manifestOf(1, `{ "Path": "a", "Size": 1 }`), "no CRC32C"},
		"SHA checksums": {manifestOf(1, `{ "Path": "a", "Size": 1, "Checksum-Algorithm": "SHA256", "Checksum": "00000000" }`), "no CRC32C"},
		"array":         {"[]", "belongs"},
	} {
		if _, _, err := readAll(strings.NewReader(test.text)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want %q", name, err, test.want)
		}
	}
}

// TestManifestEveryByte flips each byte of a manifest in turn.
func TestManifestEveryByte(t *testing.T) {
	good := manifestOf(1, fileLine("a", "a"), fileLine("b", "b"))
	for i := range good[:len(good)-2] { // but for "}\n", which JSON minds or nobody
		text := []byte(good)
		text[i] ^= 0x01
		if _, _, err := readAll(strings.NewReader(string(text))); err == nil {
			t.Errorf("byte %d flipped: %q was read", i, text[max(0, i-20):i+1])
		}
	}
}

func FuzzManifest(f *testing.F) {
	f.Add(manifestOf(1, fileLine("a", "a")))
	f.Add(`{"Files":[{}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		_, wal, err := readAll(strings.NewReader(text))
		if err == nil && wal.timeline == 0 && !strings.Contains(text, "WAL-Ranges") {
			t.Error("a manifest without a WAL range was taken")
		}
	})
}
