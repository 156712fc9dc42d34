package parameters

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"holdfast/engine/model"
)

// Normalize returns a value as PostgreSQL shows it, or an error for the client about
// field. memory is that of the machine in bytes, 0 if it is not known.
func (p Parameter) Normalize(field, value string, memory int64) (string, error) {
	value = strings.TrimSpace(value)
	switch p.Kind {
	case Boolean:
		return p.boolean(field, value)
	case Choice:
		if !slices.Contains(p.Values, strings.ToLower(value)) {
			return "", model.Invalid(field, "must be one of: %s", strings.Join(p.Values, ", "))
		}
		return strings.ToLower(value), nil
	case Text:
		if !zone.MatchString(value) {
			return "", model.Invalid(field, "must be the name of a time zone, such as UTC or Europe/Berlin")
		}
		return value, nil
	default:
		return p.bounded(field, value, memory)
	}
}

// Show returns a value as PostgreSQL shows it, whatever its bounds.
func (p Parameter) Show(value string) string {
	switch p.Kind {
	case Integer, Number, Memory, Duration:
		if n, err := p.number(value); err == nil && n >= 0 {
			return p.format(n)
		}
	}
	return value
}

// zone is the form of a time zone's name. PostgreSQL looks for a file of that name, so
// it has no dot.
var zone = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_+-]{0,30}(/[A-Za-z0-9_+-]{1,30}){0,2}$`)

func (p Parameter) boolean(field, value string) (string, error) {
	switch strings.ToLower(value) {
	case "on", "true", "yes":
		return "on", nil
	case "off", "false", "no":
		return "off", nil
	}
	return "", model.Invalid(field, "must be on or off")
}

// bounded normalizes a number.
func (p Parameter) bounded(field, value string, memory int64) (string, error) {
	if p.Off != "" && value == p.Off {
		return value, nil
	}
	n, err := p.number(value)
	if err != nil {
		return "", model.Invalid(field, "%s", err.Error())
	}
	least, _ := p.number(p.Min)
	if most := p.most(memory); n < least || n > most {
		or := ""
		if p.Off != "" {
			or = ", or " + p.Off
		}
		return "", model.Invalid(field, "must be from %s to %s%s", p.Min, p.format(most), or)
	}
	return p.format(n), nil
}

var number = regexp.MustCompile(`^(-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]{1,2})?) ?([A-Za-z]*)$`)

// number reads a number with or without its unit, in the parameter's unit.
func (p Parameter) number(value string) (float64, error) {
	wanted := fmt.Errorf("must be %s", p.form())
	parts := number.FindStringSubmatch(value)
	if parts == nil {
		return 0, wanted
	}
	n, err := strconv.ParseFloat(parts[1], 64)
	if err != nil {
		return 0, wanted
	}
	if unit := parts[2]; unit != "" {
		factor, known := p.units()[unit]
		if !known {
			return 0, wanted
		}
		n = n * factor / p.units()[p.Unit]
	}
	if p.whole() && n != math.Trunc(n) {
		return 0, fmt.Errorf("must be a whole number of %s", orUnits(p.Unit))
	}
	return n, nil
}

func orUnits(unit string) string {
	if unit == "" {
		return "units"
	}
	return unit
}

// whole reports whether PostgreSQL keeps the number as an integer.
func (p Parameter) whole() bool { return p.Kind != Number && p.Name != "autovacuum_vacuum_cost_delay" }

// form says how a value is written.
func (p Parameter) form() string {
	switch p.Kind {
	case Memory:
		return "an amount of memory such as 64MB (units: B, kB, MB, GB, TB)"
	case Duration:
		return "a time such as 30s (units: us, ms, s, min, h, d)"
	case Integer:
		return "a whole number"
	default:
		return "a number"
	}
}

func (p Parameter) units() map[string]float64 {
	switch p.Kind {
	case Memory:
		return memoryUnits()
	case Duration:
		return map[string]float64{"us": 0.001, "ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
	default:
		return nil
	}
}

func memoryUnits() map[string]float64 {
	return map[string]float64{"B": 1, "kB": 1 << 10, "8kB": 8 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
}

// format writes a number with the largest unit of which it is a multiple, as
// PostgreSQL does.
func (p Parameter) format(n float64) string {
	unit := ""
	if units := p.units(); units != nil && n > 0 {
		unit = p.Unit
		for _, larger := range []string{"kB", "MB", "GB", "TB", "s", "min", "h", "d"} {
			factor, known := units[larger]
			if in := n * units[p.Unit] / factor; known && factor > units[unit] && in == math.Trunc(in) {
				n, unit = in, larger
				p.Unit = larger
			}
		}
		if unit == "8kB" {
			n, unit = n*8, "kB"
		}
	}
	return strconv.FormatFloat(n, 'f', -1, 64) + unit
}
