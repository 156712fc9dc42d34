package backup

import (
	"path"
	"strconv"
	"strings"
)

// relationFile is a parsed file name: base/5/16384_fsm.1 is the second segment
// of the free space map of relation 16384 in database 5.
type relationFile struct {
	number  string // of the relation, "16384"
	fork    string // "" for the main fork, else fsm, vm or init
	segment uint32
	temp    bool // a temporary relation: t3_16384
}

// parseRelation parses the name of a file in the data directory, if it belongs
// to a relation.
func parseRelation(name string) (f relationFile, ok bool) {
	dir, base := path.Split(name)
	if dir != "global/" && (!strings.HasPrefix(dir, "base/") || strings.Count(dir, "/") != 2) {
		return f, false
	}
	base, segment, hasSegment := strings.Cut(base, ".")
	if hasSegment {
		n, err := strconv.ParseUint(segment, 10, 32)
		if err != nil || n == 0 {
			return f, false
		}
		f.segment = uint32(n)
	}
	if rest, temp := strings.CutPrefix(base, "t"); temp {
		backend, number, found := strings.Cut(rest, "_")
		if !found || !isNumber(backend) {
			return f, false
		}
		f.temp, base = true, number
	}
	f.number, f.fork, _ = strings.Cut(base, "_")
	if !isNumber(f.number) || base == f.number+"_" {
		return f, false
	}
	return f, f.fork == "" || f.fork == "fsm" || f.fork == "vm" || f.fork == "init"
}

func isNumber(s string) bool {
	_, err := strconv.ParseUint(s, 10, 32)
	return err == nil
}
