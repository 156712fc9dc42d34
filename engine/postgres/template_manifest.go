package postgres

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// manifestFile is a file of the template that lists its other files. Copies of the
// template do not have it.
const manifestFile = "holdfast_manifest"

// errTemplateDamaged says that the template is not what was built.
var errTemplateDamaged = errors.New("the template of data directories is damaged")

// manifest has the size and the CRC-32C of each file of the template, by its path in
// it, except for older WAL, which no copy gets. It finds what a disk lost or changed.
type manifest map[string]fileSum

type fileSum struct {
	Size int64  `json:"size"`
	CRC  uint32 `json:"crc32c"`
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sumFile reads a file into a buffer.
func sumFile(path string, buffer []byte) (fileSum, error) {
	f, err := os.Open(path)
	if err != nil {
		return fileSum{}, err
	}
	defer f.Close()
	return sumReader(f, buffer)
}

// sumReader reads a file to its end.
func sumReader(f io.Reader, buffer []byte) (sum fileSum, err error) {
	for {
		n, err := f.Read(buffer)
		sum.Size += int64(n)
		sum.CRC = crc32.Update(sum.CRC, castagnoli, buffer[:n])
		if err == io.EOF {
			return sum, nil
		}
		if err != nil {
			return sum, err
		}
	}
}

// sumTree returns the manifest of the files in dir.
func sumTree(dir string) (manifest, error) {
	files, buffer := manifest{}, make([]byte, copyBuffer)
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || entry.Name() == manifestFile {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err == nil {
			files[name], err = sumFile(path, buffer)
		}
		return err
	})
	return files, err
}

func writeManifest(template string) error {
	files, err := sumTree(template)
	if err != nil {
		return err
	}
	text, err := json.Marshal(files)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(template, manifestFile), text, 0o600)
}

func readManifest(template string) (manifest, error) {
	text, err := os.ReadFile(filepath.Join(template, manifestFile))
	if err != nil {
		return nil, err
	}
	var files manifest
	if err := json.Unmarshal(text, &files); err != nil {
		return nil, fmt.Errorf("%s: %w", manifestFile, err)
	}
	return files, nil
}

// compare returns errTemplateDamaged unless other lists the same files.
func (m manifest) compare(other manifest) error {
	for name, sum := range m {
		if other[name] != sum {
			return fmt.Errorf("%w: %s", errTemplateDamaged, name)
		}
	}
	for name := range other {
		if _, known := m[name]; !known {
			return fmt.Errorf("%w: %s is unknown", errTemplateDamaged, name)
		}
	}
	return nil
}
