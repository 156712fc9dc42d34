package importer

import (
	"fmt"
	"maps"
	"slices"

	"holdfast/engine/model"
)

// mostRoles bounds the number of roles in the record.
const mostRoles = 200

// leaveOut records the roles whose grants were not copied, by name with the number of grants.
func (a *Account) leaveOut(grants map[string]int) {
	var roles []model.ImportRole
	for _, name := range slices.Sorted(maps.Keys(grants)) {
		if len(roles) == mostRoles {
			a.Say(model.ImportWarning, fmt.Sprintf("%d more roles of the source are not copied", len(grants)-mostRoles))
			break
		}
		roles = append(roles, model.ImportRole{Name: oneLine(name), Grants: grants[name]})
		a.Say(model.ImportWarning, fmt.Sprintf("roles of the source are not copied: %s to %q left out", model.Count(grants[name], "grant"), oneLine(name)))
	}
	a.change(func(record *model.Import) { record.Roles = roles })
}
