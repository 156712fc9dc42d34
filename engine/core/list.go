package core

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// Filter selects records of a list by what most of them have. An empty field
// selects all.
type Filter struct {
	Project, Name               string
	CreatedAfter, CreatedBefore time.Time // both exclusive
}

// Admits reports whether a record with these properties is selected.
func (f Filter) Admits(project, name string, created time.Time) bool {
	return Equals(f.Project, project) && Equals(f.Name, name) &&
		(f.CreatedAfter.IsZero() || created.After(f.CreatedAfter)) &&
		(f.CreatedBefore.IsZero() || created.Before(f.CreatedBefore))
}

// Equals reports whether a filter's field admits a value.
func Equals[T ~string](wanted, value T) bool { return wanted == "" || wanted == value }

// Selection is a part of a list's records; zero is all.
type Selection[T any] struct {
	// Filter identifies the selection in cursors.
	Filter any
	// Matches reports whether a record is selected. It must not do I/O.
	Matches func(T) bool
}

// Select returns the records that match a filter.
func Select[T any](filter any, matches func(T) bool) Selection[T] {
	return Selection[T]{Filter: filter, Matches: matches}
}

func (s Selection[T]) matches(record T) bool { return s.Matches == nil || s.Matches(record) }

// Walk starts reading a page of the selected records of a list.
func (s Selection[T]) Walk(c *Core, call *model.Call, list model.Action, page Page, parameters ...string) (Walk, error) {
	if s.Filter != nil {
		parameters = append(parameters, fmt.Sprintf("%#v", s.Filter))
	}
	return c.Walk(call, list, page, parameters...)
}

// ListRecords returns a page of a table's records that belong to the call's
// organization, read with View or ViewFlushed.
func ListRecords[T any](
	c *Core, view func(func(*meta.Tx) error) error, call *model.Call, list model.Action, table func(*meta.Tx) meta.Table[T], page Page, selection Selection[T],
) (List[T], error) {
	w, err := selection.Walk(c, call, list, page)
	if err != nil {
		return List[T]{}, err
	}
	return WalkRecords(view, w, table, meta.ByOrganization, call.Organization, selection)
}

// WalkRecords returns a page of a table's records with one key in an index. With a
// selection it may have fewer records than its limit and still a next page, because
// the length of one search is bounded.
func WalkRecords[T any](
	view func(func(*meta.Tx) error) error, w Walk, table func(*meta.Tx) meta.Table[T], index, key string, selection Selection[T],
) (list List[T], err error) {
	err = view(func(tx *meta.Tx) error {
		records, next, err := table(tx).Search(index, meta.Key(key), w.After, w.Limit, selection.matches)
		list.Items = records
		if next != "" {
			list.Next = w.CursorAt(next)
		}
		return err
	})
	return list, err
}

// ListNamed is ListRecords for the records with one name, by the table's index of
// names within projects. It finds them among any number of others.
func ListNamed[T any](
	c *Core, view func(func(*meta.Tx) error) error, call *model.Call, list model.Action, table func(*meta.Tx) meta.Table[T], page Page,
	name string, id func(T) string, selection Selection[T],
) (List[T], error) {
	w, err := selection.Walk(c, call, list, page)
	if err != nil {
		return List[T]{}, err
	}
	var found []T
	err = view(func(tx *meta.Tx) error {
		for _, project := range tx.ProjectIDs(call.Organization) {
			record, err := table(tx).Find(meta.ByName, meta.Key(project, name))
			if errors.Is(err, meta.ErrNotFound) {
				continue
			}
			if err != nil {
				return err
			}
			if selection.matches(record) && (w.After == "" || id(record) < w.After) {
				found = append(found, record)
			}
		}
		return nil
	})
	slices.SortFunc(found, func(a, b T) int { return cmp.Compare(id(b), id(a)) })
	shown := min(w.Limit, len(found))
	return NewList(w, found[:shown], shown < len(found), id), err
}
