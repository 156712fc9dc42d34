package model

import (
	"regexp"
	"strings"
)

// A label of a host name. Underscores are in no name of the public DNS, and in those that container networks give.
var hostLabel = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?$`)

// IsHostName reports whether name is the name of a host, in ASCII and without a
// dot at its end. An address, and what looks like a wrong one, is none.
func IsHostName(name string) bool {
	labels := strings.Split(name, ".")
	for _, label := range labels {
		if !hostLabel.MatchString(label) {
			return false
		}
	}
	return len(name) <= 253 && strings.Trim(labels[len(labels)-1], "0123456789") != ""
}
