package backup

import (
	"archive/tar"
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// tarOf makes an archive of members whose content is their name.
func tarOf(t testing.TB, members ...tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, h := range members {
		if h.Typeflag == tar.TypeReg {
			h.Size = int64(len(h.Name))
		}
		h.Mode = 0o600
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			fmt.Fprint(w, h.Name)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestArchiveContents(t *testing.T) {
	archive := tarOf(t, tar.Header{Typeflag: tar.TypeDir, Name: "base/"}, tar.Header{Typeflag: tar.TypeReg, Name: "base/1"},
		tar.Header{Typeflag: tar.TypeDir, Name: "./pg_wal/archive_status/"})
	files, err := archiveContents(bytes.NewReader(append(archive, make([]byte, 10240)...)))
	if err != nil || len(files) != 1 || files["base/1"].size != 6 {
		t.Errorf("files %v, %v", files, err)
	}
}

func TestArchiveRefuses(t *testing.T) {
	file := func(name string) tar.Header { return tar.Header{Typeflag: tar.TypeReg, Name: name} }
	for name, h := range map[string]tar.Header{
		"absolute":  file("/etc/passwd"),
		"parent":    file("../x"),
		"inner ..":  file("base/../../x"),
		"not clean": file("base//x"),
		"dot":       {Typeflag: tar.TypeDir, Name: "./"},
		"root":      {Typeflag: tar.TypeDir, Name: "/"},
		"symlink":   {Typeflag: tar.TypeSymlink, Name: "pg_wal", Linkname: "/etc"},
		"hard link": {Typeflag: tar.TypeLink, Name: "a", Linkname: "/etc/passwd"},
		"device":    {Typeflag: tar.TypeChar, Name: "null", Devmajor: 1, Devminor: 3},
		"pipe":      {Typeflag: tar.TypeFifo, Name: "pipe"},
	} {
		archive := tarOf(t, file("first"), h)
		if _, err := archiveContents(bytes.NewReader(archive)); err == nil || !strings.Contains(err.Error(), "archive holds") {
			t.Errorf("%s: %v", name, err)
		}
	}
	twice := tarOf(t, file("a"), file("a"))
	if _, err := archiveContents(bytes.NewReader(twice)); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("twice: %v", err)
	}
	whole := tarOf(t, file("a"))
	if _, err := archiveContents(bytes.NewReader(append(whole, "more"...))); err == nil {
		t.Error("an archive with something after its end was taken")
	}
	if _, err := archiveContents(bytes.NewReader(whole[:512])); err == nil {
		t.Error("an archive cut in a file was taken")
	}
}
