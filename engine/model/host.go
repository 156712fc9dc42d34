package model

import (
	"regexp"
	"strings"
)

// hostLabel matches a label of a host name. Container networks use underscores; public DNS names do not.
var hostLabel = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?$`)

// IsHostName reports whether name is an ASCII host name without a trailing dot.
// It rejects addresses and texts that look like malformed ones.
func IsHostName(name string) bool {
	labels := strings.Split(name, ".")
	for _, label := range labels {
		if !hostLabel.MatchString(label) {
			return false
		}
	}
	return len(name) <= 253 && strings.Trim(labels[len(labels)-1], "0123456789") != ""
}
