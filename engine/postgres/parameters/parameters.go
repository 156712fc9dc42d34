// Package parameters is the catalogue of PostgreSQL's settings that a tenant may
// change for a database, with the values that each may have.
//
// It leaves out everything that reaches files, programs or networks, that the WAL
// archive and recovery rely on, or with which a server might not start. Settings
// that cost memory are bounded by the machine's, because all databases share it.
package parameters

import (
	"slices"
	"strings"
)

// Kind says what the values of a parameter are.
type Kind string

// The kinds. A memory or duration is a number with a unit.
const (
	Boolean  Kind = "boolean"
	Integer  Kind = "integer"
	Number   Kind = "number"
	Memory   Kind = "memory"
	Duration Kind = "duration"
	Choice   Kind = "choice"
	Text     Kind = "text"
)

// Parameter is an entry of the catalogue.
type Parameter struct {
	Name string
	Kind Kind
	// Unit is that of a number without one, as in PostgreSQL: kB, 8kB, B, ms, s, min;
	// "" for kinds without units.
	Unit string
	// Min and Max bound numbers, in the notation of values. Off is a value outside
	// these bounds that switches the parameter off, "" if there is none.
	Min, Max, Off string
	// Share makes the maximum at most that part (1/Share) of the machine's memory.
	Share int64
	// Values are those of a choice.
	Values []string
	// Area groups parameters for people.
	Area string
}

// Find returns the entry of a parameter.
func Find(name string) (Parameter, bool) {
	all := Catalogue()
	i := slices.IndexFunc(all, func(p Parameter) bool { return p.Name == name })
	if i < 0 {
		return Parameter{Name: name}, false
	}
	return all[i], true
}

// Most returns the highest number that it may have on a machine with so much memory,
// in bytes; 0 if that is not known.
func (p Parameter) Most(memory int64) string {
	if p.Share == 0 || memory <= 0 {
		return p.Max
	}
	return p.format(p.most(memory))
}

// Choices returns the values of a choice or a boolean.
func (p Parameter) Choices() []string {
	if p.Kind == Boolean {
		return []string{"on", "off"}
	}
	return p.Values
}

// Range says in words which numbers the parameter may have, "" for other kinds.
func (p Parameter) Range() string {
	if p.Min == "" {
		return ""
	}
	text := p.Min + " to " + p.Max
	if p.Off != "" {
		text += ", or " + p.Off
	}
	return text
}

// most is Most in the parameter's unit.
func (p Parameter) most(memory int64) float64 {
	most, _ := p.number(p.Max)
	if p.Share == 0 || memory <= 0 {
		return most
	}
	least, _ := p.number(p.Min)
	part := float64(memory/p.Share>>20<<20) / p.unitBytes() // of whole megabytes
	return max(least, min(most, part))
}

// unitBytes returns the size of the parameter's unit of memory.
func (p Parameter) unitBytes() float64 { return memoryUnits()[p.Unit] }

// Catalogue returns all parameters, ordered by area and name.
func Catalogue() []Parameter {
	all := slices.Concat(timeouts(), memory(), planner(), parallel(), vacuum(), logging(), sessions())
	slices.SortStableFunc(all, func(a, b Parameter) int {
		return strings.Compare(a.Area+"\x00"+a.Name, b.Area+"\x00"+b.Name)
	})
	return all
}
