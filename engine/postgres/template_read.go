package postgres

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"holdfast/internal/pgcontrol"
)

// template is a template as its manifest describes it, read once for all copies. The files that differ between
// copies are in memory.
type template struct {
	dir         string
	directories []string       // parents first
	files       []templateFile // without pg_control and the WAL
	control     []byte         // pg_control
	wal         string         // the file that has the last checkpoint; a server that was shut down needs nothing older
	walContent  []byte         // without the zeros at its end
}

type templateFile struct {
	name string
	fileSum
}

// readTemplate reads the template in dir, without the content of its files.
func readTemplate(dir string) (*template, error) {
	sums, err := readManifest(dir)
	if err != nil {
		return nil, err
	}
	t := &template{dir: dir}
	if t.control, err = readListed(dir, pgcontrol.File, sums); err != nil {
		return nil, err
	}
	if pgcontrol.Content(t.control) == nil {
		return nil, fmt.Errorf("%w: %s", errTemplateDamaged, pgcontrol.File)
	}
	t.wal = filepath.Join("pg_wal", segmentOf(t.control))
	if t.walContent, err = readListed(dir, t.wal, sums); err != nil {
		return nil, err
	}
	if len(t.walContent) != walSegment || binary.LittleEndian.Uint64(t.walContent[walIdentifier:]) != pgcontrol.SystemIdentifier(t.control) {
		return nil, fmt.Errorf("%w: %s belongs to another cluster", errTemplateDamaged, t.wal)
	}
	t.walContent = bytes.Clone(bytes.TrimRight(t.walContent, "\x00"))
	return t, t.list(sums)
}

// readListed reads a file that the manifest lists, and checks it.
func readListed(dir, name string, sums manifest) ([]byte, error) {
	content, err := os.ReadFile(filepath.Join(dir, name))
	if err == nil && sums[name] != (fileSum{Size: int64(len(content)), CRC: crc32.Checksum(content, castagnoli)}) {
		err = fmt.Errorf("%w: %s", errTemplateDamaged, name)
	}
	return content, err
}

// list sets the directories, which the manifest lacks, and the files.
func (t *template) list(sums manifest) error {
	err := filepath.WalkDir(t.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == t.dir || !entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(t.dir, path)
		t.directories = append(t.directories, name)
		return err
	})
	for name, sum := range sums {
		if name != pgcontrol.File && filepath.Dir(name) != filepath.Dir(t.wal) {
			t.files = append(t.files, templateFile{name, sum})
		}
	}
	slices.SortFunc(t.files, func(a, b templateFile) int { return bytes.Compare([]byte(a.name), []byte(b.name)) })
	return err
}
