package importer

import (
	"context"
	"fmt"

	"holdfast/engine/model"
)

// PublicationField is the name in errors of the input that names a publication.
const PublicationField = "publication"

// Following says what a new database follows after the copy.
type Following struct {
	Publication string // of the source
	Slot        string // to be made at the source; a name that needs no quotes
}

// following is a session's Following and what the source has for it.
type following struct {
	Following
	publication publication
	extensions  []extensionTable // published tables of extensions
	made        bool             // the slot may exist at the source
}

// Follow makes the copy begin at a replication slot, so that a subscription can continue it. It refuses a source that
// cannot be followed, with the statements that change that, and changes nothing.
func (s *Session) Follow(ctx context.Context, f Following) error {
	s.follow = &following{Following: f}
	for _, check := range []func(context.Context) error{s.checkLogical, s.checkPublication, s.checkReplicates} {
		if err := check(ctx); err != nil {
			return s.trouble(ctx, err)
		}
	}
	return nil
}

// MadeSlot reports whether the session may have left a slot at the source.
func (s *Session) MadeSlot() bool { return s.follow != nil && s.follow.made }

// checkLogical refuses a server whose changes cannot be decoded.
func (s *Session) checkLogical(ctx context.Context) error {
	if s.number < 100000 {
		return model.Invalid(SourceField, "the server is PostgreSQL %s, and only 10 and newer can be followed: import it without mode follow", s.Version)
	}
	var level string
	var standby bool
	if err := s.conn.QueryRow(ctx, "select current_setting('wal_level'), pg_is_in_recovery()").Scan(&level, &standby); err != nil {
		return sourceError{fmt.Errorf("read wal_level: %w", err)}
	}
	switch {
	case standby:
		return model.Invalid(SourceField, "the server is a standby, which cannot be followed: give the address of its primary")
	case level != "logical":
		return model.Invalid(SourceField, "the server's wal_level is %s, and must be logical for a database to be followed: run there as a superuser "+
			"ALTER SYSTEM SET wal_level = 'logical'; and restart the server (managed services have a parameter for it, such as rds.logical_replication)", oneLine(level))
	default:
		return nil
	}
}

// checkReplicates refuses a user who may not replicate, or a server that has no place for another.
func (s *Session) checkReplicates(ctx context.Context) error {
	conn, err := s.source.replicate(ctx)
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

// noteFollowed records what the new database will not follow, before the copy begins. It knows the extensions that are
// missing here, and refuses a publication with their tables.
func (s *Session) noteFollowed(ctx context.Context) error {
	if s.follow == nil {
		return nil
	}
	if err := s.markPublished(ctx, s.inventory.tables); err != nil {
		return err
	}
	extensions, err := s.refuseExtensionTables(ctx, s.inventory.tables)
	if err != nil {
		return err
	}
	s.follow.extensions = extensions
	notes := []string{"definitions (CREATE, ALTER, DROP): make none at the source until the cutover"}
	if n := len(s.inventory.sequences); n > 0 {
		notes = append(notes, model.Count(n, "sequence")+": carried over at the cutover")
	}
	if n := s.inventory.largeObjects; n > 0 {
		notes = append(notes, model.Count(n, "large object")+": as they are now; later changes are not copied")
	}
	if n := len(s.inventory.views); n > 0 {
		notes = append(notes, model.Count(n, "materialized view")+": filled anew every hour or less often, or at the cutover if row security is forced on the owner")
	}
	if s.number < 110000 {
		notes = append(notes, "TRUNCATE: PostgreSQL 10 does not publish it")
	}
	if names := unpublished(s.inventory.tables); len(names) > 0 {
		notes = append(notes, fmt.Sprintf("%s that the publication %q does not have, as they are now: %s", model.Count(len(names), "table"), oneLine(s.follow.Publication), few(names)))
	}
	if len(extensions) > 0 {
		names := make([]string, len(extensions))
		for i, t := range extensions {
			names[i] = t.String()
		}
		notes = append(notes, "tables of extensions, which have their rows from the extension here: make no changes of them at the source until the cutover: "+few(names))
	}
	for _, note := range notes {
		s.account.Say(model.ImportWarning, "does not follow: "+note)
	}
	s.account.ChangeFollow(func(follow *model.ImportFollow) { follow.NotFollowed = notes })
	return nil
}

func unpublished(tables []table) (names []string) {
	for _, t := range tables {
		if !t.published {
			names = append(names, t.String())
		}
	}
	return names
}
