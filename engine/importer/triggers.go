package importer

import "strings"

// enableTrigger is the kind of entries that make a trigger fire for replicated changes.
const enableTrigger = "ENABLE TRIGGER"

// splitTrigger returns an entry that creates the trigger, and one for the cutover that makes it fire for replicated changes
// (ENABLE ALWAYS or REPLICA), each if there is something to do. Until the cutover all changes are the source's, and so are
// the effects of its triggers.
func splitTrigger(e entry) (entries []entry) {
	var create, enable []string
	for _, s := range statements(e.definition) {
		if strings.HasPrefix(s, "ALTER ") && (strings.Contains(s, " ENABLE ALWAYS TRIGGER ") || strings.Contains(s, " ENABLE REPLICA TRIGGER ")) {
			enable = append(enable, s+";\n")
		} else {
			create = append(create, s+";\n")
		}
	}
	if len(create) > 0 {
		e.definition = strings.Join(create, "")
		entries = append(entries, e)
	}
	if len(enable) > 0 {
		e.desc, e.definition = enableTrigger, strings.Join(enable, "")
		entries = append(entries, e)
	}
	return entries
}
