package binaries

import (
	"fmt"
	"os"
	"path/filepath"
)

// HasExtension reports whether the machine has the files of an extension for servers of
// b. sure is false if b keeps them in none of the usual places.
func (b Set) HasExtension(name string) (has, sure bool) {
	for _, layout := range []string{
		"../share/extension", "../share/postgresql/extension", fmt.Sprintf("../share/postgresql@%d/extension", b.Major),
		fmt.Sprintf("../../../../share/postgresql/%d/extension", b.Major), // Debian's
	} {
		dir := filepath.Join(b.Dir, layout)
		if _, err := os.Stat(filepath.Join(dir, "plpgsql.control")); err != nil {
			continue
		}
		_, err := os.Stat(filepath.Join(dir, name+".control"))
		return err == nil, true
	}
	return false, false
}
