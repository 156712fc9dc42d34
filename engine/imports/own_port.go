package imports

import (
	"fmt"

	"holdfast/engine/model"
)

// notOwn is why nobody imports from a server of the appliance that is not their organization's.
const notOwn = "is a database of this appliance that is not your organization's: it would let the appliance in where its allow-list does not let you; " +
	"have its owner take a dump"

// refusePort returns why an organization may not import from a port of this machine, "" if it may. It may from the ports
// at which its own databases admit clients, and from those of other programs. The allow-list of another's database may
// admit the appliance's address but not the client that asks for the import. A private port of a server is behind the
// proxy that enforces the allow-list.
func (s *Service) refusePort(organization string, port int) (reason string, err error) {
	dbs, err := s.databases.KeptDatabases()
	if err != nil {
		return "", fmt.Errorf("list the databases of this machine: %w", err)
	}
	own := map[string]model.Database{}
	for _, db := range dbs {
		if db.Organization == organization {
			own[db.ID] = db
		} else if db.Port == port {
			return notOwn, nil
		}
	}
	for id, listens := range s.databases.ServerPorts(dbs) {
		db, isOwn := own[id]
		switch {
		case listens != port || isOwn && db.Port == port:
		case isOwn:
			return fmt.Sprintf("is a private port of your database %s: its clients use the port %d, so import from that", db.Name, db.Port), nil
		default:
			return notOwn, nil
		}
	}
	return "", nil
}
