package access

import (
	"fmt"
	"slices"
	"strings"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// PersonSession is a session with its person.
type PersonSession struct {
	model.Session
	Person model.User
}

// position orders sessions by their start.
func (s PersonSession) position() string {
	return fmt.Sprintf("%020d.%s", s.CreatedAt.UnixNano(), s.ID())
}

// SessionFilter selects sessions. An empty field selects all.
type SessionFilter struct {
	core.Filter
	User string // id
}

// SessionList returns the sessions of the people in the call's organization that match the
// filter, newest first.
func (s *Service) SessionList(call *model.Call, filter SessionFilter, page core.Page) (core.List[PersonSession], error) {
	selection := core.Select(filter, func(it PersonSession) bool {
		return core.Equals(filter.User, it.User) && filter.Admits("", "", it.CreatedAt)
	})
	w, err := selection.Walk(s.core, call, model.ActionSessionList, page)
	if err != nil {
		return core.List[PersonSession]{}, err
	}
	all, err := meta.Value(s.core.Meta.View, func(tx *meta.Tx) ([]PersonSession, error) {
		return s.sessionsIn(tx, call.Organization, func(it PersonSession) bool {
			return selection.Matches(it) && (w.After == "" || it.position() < w.After)
		})
	})
	slices.SortFunc(all, func(a, b PersonSession) int { return strings.Compare(b.position(), a.position()) })
	shown := min(w.Limit, len(all))
	return core.NewList(w, all[:shown], shown < len(all), PersonSession.position), err
}

// sessionsIn returns the usable sessions of an organization's people that match.
func (s *Service) sessionsIn(tx *meta.Tx, organization string, matches func(PersonSession) bool) (found []PersonSession, err error) {
	people, err := core.AllBy(tx.Users(), meta.ByOrganization, meta.Key(organization))
	if err != nil {
		return nil, err
	}
	now := s.core.Clock()
	for _, person := range people {
		sessions, err := sessionsOf(tx, person.ID)
		if err != nil {
			return nil, err
		}
		for _, it := range sessions {
			if seen := (PersonSession{it, person}); it.Usable(now) && matches(seen) {
				found = append(found, seen)
			}
		}
	}
	return found, nil
}

// SessionEnd ends a session of a person in the call's organization.
func (s *Service) SessionEnd(call *model.Call, id string) error {
	call.Resource = model.Resource{Type: model.ResourceSession, ID: id}
	return s.core.ChangeAuthority(call, func(tx *meta.Tx) error {
		found, err := s.sessionsIn(tx, call.Organization, func(it PersonSession) bool { return it.ID() == id })
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return model.NotFound(model.ResourceSession, id)
		}
		call.Resource.Name = found[0].Person.Email
		if found[0].User != call.Actor.ID {
			if err := mayManage(call, found[0].Person.Role); err != nil {
				return err
			}
		}
		return tx.Sessions().Delete(found[0].TokenHash)
	})
}
