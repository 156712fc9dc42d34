package databases

import (
	"bytes"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"holdfast/engine/model"
	"holdfast/engine/postgres/binaries"
)

// unknownSettings returns the names of a database's settings, those of clients and of the operator, that PostgreSQL of these
// binaries does not know. A server with them would refuse to start: they were made for another major version, to which an undo,
// a restore or an upgrade leads, and are left out until that is back.
func (s *Service) unknownSettings(bin binaries.Set, db model.Database) (unknown []string) {
	names := slices.AppendSeq(slices.Collect(maps.Keys(db.Settings)), maps.Keys(db.OwnSettings))
	for _, name := range names {
		if !s.settingNames.known(bin, name) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	return slices.Compact(unknown)
}

// refuseUnknown refuses new settings that PostgreSQL does not know.
func (s *Service) refuseUnknown(bin binaries.Set, change map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(change)) {
		if change[name] != "" && !s.settingNames.known(bin, name) {
			return model.Invalid("setting", "PostgreSQL %d has no setting %s; nothing was changed", bin.Major, name)
		}
	}
	return nil
}

// settingNames remembers which settings the server's program of which version knows.
type settingNames struct{ found sync.Map } // from settingOf to bool

// known reports whether a server knows a setting. Extensions define those with a dot, and a server accepts any such name.
// Otherwise the name is a string in the server's program, where some have capitals (IntervalStyle): a name that is not there is surely
// unknown. PostgreSQL can print only those of its settings that belong into a configuration file. A program that cannot be read
// knows everything, and so does one without work_mem, which is a script that starts the server.
func (n *settingNames) known(bin binaries.Set, name string) bool {
	if strings.Contains(name, ".") {
		return true
	}
	key := settingOf{bin.Dir, bin.Version, name}
	if known, ok := n.found.Load(key); ok {
		return known.(bool)
	}
	program, err := os.ReadFile(bin.Tool("postgres"))
	if err != nil {
		return true
	}
	for i, c := range program {
		if 'A' <= c && c <= 'Z' {
			program[i] = c + 'a' - 'A'
		}
	}
	has := func(name string) bool { return bytes.Contains(program, append([]byte(name), 0)) }
	known := has(strings.ToLower(name)) || !has("work_mem")
	n.found.Store(key, known)
	return known
}

// settingOf names a setting of a version.
type settingOf struct{ dir, version, name string }
