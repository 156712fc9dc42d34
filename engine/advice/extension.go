package advice

import (
	"context"
	"fmt"
	"net/url"

	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// extensionVersions finds extensions whose files the machine lacks, and those that can be updated.
func extensionVersions(ctx context.Context, s *Session) (found []model.Recommendation, err error) {
	all, err := postgres.Extensions(ctx, s.Conn)
	if err != nil {
		return nil, err
	}
	for _, x := range all {
		switch {
		case x.Missing():
			found = append(found, s.missingExtension(x))
		case x.Update() != "" && x.Owner == postgres.Superuser && x.Allowed() && x.Fixed == "":
			found = append(found, s.oldExtension(x))
		}
	}
	return found[:min(len(found), maxFindings)], nil
}

func (s *Session) missingExtension(x postgres.Extension) model.Recommendation {
	rec := s.about("extension_missing", model.SeverityCritical, x.Name, "An extension without its files",
		fmt.Sprintf("The database has the extension %s, and the machine does not have its files: what needs it fails. The operator can %s.",
			x.Name, x.Install(s.Database.Major)))
	rec.Evidence = map[string]any{"extension": x.Name, "installed": x.Installed}
	rec.Action = call("DELETE", s.Database, "/extensions/"+url.PathEscape(x.Name), nil)
	rec.Caution = "This drops the extension, which is refused while anything needs it. Once its files are installed, it works again, and nothing needs to be dropped."
	return rec
}

func (s *Session) oldExtension(x postgres.Extension) model.Recommendation {
	rec := s.about("extension_outdated", model.SeverityInfo, x.Name, "An extension can be updated",
		fmt.Sprintf("The database has version %s of the extension %s, and the machine has %s.", x.Installed, x.Name, x.Available))
	rec.Evidence = map[string]any{"extension": x.Name, "installed": x.Installed, "available": x.Available}
	rec.Action = call("POST", s.Database, "/extensions", map[string]any{"name": x.Name})
	rec.Caution = "Read the extension's release notes first: an update cannot be taken back."
	return rec
}
