package importer

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/model"
)

// identified is a condition for tables whose changed rows have an identity. PostgreSQL uses no DEFERRABLE key for it.
const identified = ` (c.relreplident = 'f' or exists (select from pg_index x where x.indrelid = c.oid and x.indimmediate
	and case c.relreplident when 'd' then x.indisprimary when 'i' then x.indisreplident else false end)) `

// identities is a query for the identities of the tables. Without a key, a row is found here by comparing all its columns,
// each with the equality of its type's default operator class. A type has one if those that it consists of have; ranges
// always do. %s is a condition for columns that are compared.
const identities = `with recursive consists (whole, part) as (
		select distinct a.atttypid, a.atttypid from pg_attribute a join pg_class c on c.oid = a.attrelid where c.relkind = 'r' and a.attnum > 0 and not a.attisdropped
		union
		select w.whole, p.part from consists w join pg_type t on t.oid = w.part cross join lateral (
			select t.typbasetype where t.typtype = 'd'
			union all select t.typelem where t.typtype = 'b' and t.typelem <> 0 and t.typlen = -1
			union all select a.atttypid from pg_attribute a where t.typtype = 'c' and a.attrelid = t.typrelid and a.attnum > 0 and not a.attisdropped) p (part)
	), incomparable as (
		select w.whole from consists w join pg_type t on t.oid = w.part where t.typtype = 'b' and not (t.typelem <> 0 and t.typlen = -1)
		and not exists (select from pg_opclass o join pg_am m on m.oid = o.opcmethod where m.amname in ('btree', 'hash') and o.opcdefault
			and (o.opcintype = t.oid or exists (select from pg_cast k
				where k.castsource = t.oid and k.casttarget = o.opcintype and k.castmethod = 'b' and k.castcontext = 'i'))))
	select c.oid, ` + identified + `, exists (select from pg_index x where x.indrelid = c.oid and x.indimmediate and (x.indisprimary or x.indisreplident)),
		not exists (select from pg_attribute a where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped %s and a.atttypid in (select whole from incomparable))
	from pg_class c where c.relkind = 'r'`

// identity says how a subscriber finds the row that a change is of.
type identity struct {
	OID        uint32
	Exists     bool // the source can publish updates and deletes
	Keyed      bool // the row can be found by a key
	Comparable bool // or by comparing all columns
}

// refuseUnidentified refuses published tables whose updates and deletes fail: at the source without a replica identity, or
// here if that is the whole row and a column cannot be compared.
func (s *Session) refuseUnidentified(ctx context.Context, tables []table) error {
	stored := ""
	if s.number >= 120000 {
		stored = "and a.attgenerated = ''"
	}
	all, err := list(ctx, s.conn, "list replica identities", pgx.RowToStructByPos[identity], strings.Replace(identities, "%s", stored, 1))
	if err != nil {
		return sourceError{err}
	}
	of := map[uint32]identity{}
	for _, i := range all {
		of[i.OID] = i
	}
	var without, statements, indistinct []string
	for _, t := range tables {
		switch i := of[t.oid]; {
		case !t.published, i.Exists && (i.Keyed || i.Comparable):
		case i.Exists:
			indistinct = append(indistinct, t.String())
		default:
			without = append(without, t.String())
			if i.Comparable {
				statements = append(statements, "ALTER TABLE "+t.sanitized()+" REPLICA IDENTITY FULL;")
			}
		}
	}
	switch remedy := "give each a primary key that is not DEFERRABLE"; {
	case len(indistinct) > 0:
		return model.Invalid(PublicationField, "published tables of the source have REPLICA IDENTITY FULL and columns of types without an equality, such as json, xml or point, "+
			"so their updates and deletes cannot be applied: %s; %s (ALTER TABLE … ADD PRIMARY KEY …), or leave them out of the publication", few(indistinct), remedy)
	case len(without) > 0:
		if len(statements) > 0 {
			remedy += ", or run in the source's database " + oneLine(strings.Join(statements[:min(len(statements), 5)], " "))
		}
		return model.Invalid(PublicationField, "published tables of the source have no replica identity, so their updates and deletes fail: %s; %s", few(without), remedy)
	default:
		return nil
	}
}
