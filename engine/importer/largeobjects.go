package importer

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

const (
	// largeObjectWeight is the weight of a large object in the plan: only a superuser can query its size.
	largeObjectWeight = 4096
	// objectsTogether is how many large objects are read at a time, and objectPart how much of each; the rest follows
	// in parts.
	objectsTogether = 64
	objectPart      = 256 << 10
)

// largeObject is a large object, or its first part.
type largeObject struct {
	oid        uint32
	data       []byte
	comment    *string
	read, edit bool // granted to PUBLIC
}

// copyLargeObjects copies every large object under its oid.
func (c *copying) copyLargeObjects(ctx context.Context, w *worker) error {
	source, target, err := w.ends(ctx)
	if err != nil {
		return err
	}
	for last := uint32(0); ; {
		objects, err := readObjects(ctx, source, last)
		if err != nil || len(objects) == 0 {
			return err
		}
		last = objects[len(objects)-1].oid
		for _, o := range objects {
			if err := copyObject(ctx, source, target, o); err != nil {
				return err
			}
		}
	}
}

func readObjects(ctx context.Context, source *pgx.Conn, after uint32) ([]largeObject, error) {
	rows, _ := source.Query(ctx, `select m.oid, lo_get(m.oid, 0, $2), obj_description(m.oid, 'pg_largeobject'),
		exists (select from aclexplode(m.lomacl) g where g.grantee = 0 and g.privilege_type = 'SELECT'),
		exists (select from aclexplode(m.lomacl) g where g.grantee = 0 and g.privilege_type = 'UPDATE')
		from pg_largeobject_metadata m where m.oid > $1::bigint::oid order by m.oid limit $3`, int64(after), objectPart, objectsTogether)
	objects, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (o largeObject, err error) {
		return o, row.Scan(&o.oid, &o.data, &o.comment, &o.read, &o.edit)
	})
	if err != nil {
		return nil, sourceError{err}
	}
	return objects, nil
}

// copyObject creates one large object, part by part, in one transaction.
func copyObject(ctx context.Context, source, target *pgx.Conn, o largeObject) error {
	tx, err := target.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	if _, err := tx.Exec(ctx, "select lo_from_bytea($1, $2)", o.oid, o.data); err != nil {
		return err
	}
	for offset, part := int64(len(o.data)), o.data; len(part) == objectPart; offset += int64(len(part)) {
		if err := source.QueryRow(ctx, "select lo_get($1::bigint::oid, $2, $3)", int64(o.oid), offset, objectPart).Scan(&part); err != nil {
			return sourceError{err}
		}
		if _, err := tx.Exec(ctx, "select lo_put($1, $2, $3)", o.oid, offset, part); err != nil {
			return err
		}
	}
	for _, statement := range o.remarks() {
		if _, err := tx.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return tx.Commit(ctx)
}

func (o largeObject) remarks() []string {
	var statements []string
	if o.read {
		statements = append(statements, fmt.Sprintf("grant select on large object %d to public", o.oid))
	}
	if o.edit {
		statements = append(statements, fmt.Sprintf("grant update on large object %d to public", o.oid))
	}
	if o.comment != nil {
		statements = append(statements, fmt.Sprintf("comment on large object %d is %s", o.oid, quoteLiteral(*o.comment)))
	}
	return statements
}
