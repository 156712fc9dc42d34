package insight

import (
	"context"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/advice"
	"holdfast/engine/model"
)

// Relations returns the tables and the indexes of the database dbname with their sizes, the largest first. It wakes a database
// that sleeps.
func (s *Service) Relations(ctx context.Context, call *model.Call, id, dbname string) (tables []advice.TableSize, indexes []advice.IndexSize, err error) {
	db, err := s.databases.Database(call, id)
	if err != nil {
		return nil, nil, err
	}
	err = s.databases.InspectNamed(ctx, db, dbname, func(ctx context.Context, conn *pgx.Conn) (err error) {
		if tables, err = advice.TableSizes(ctx, conn); err == nil {
			indexes, err = advice.IndexSizes(ctx, conn)
		}
		return err
	})
	return tables, indexes, err
}

// The types that this package's answers consist of.
type (
	TableSize      = advice.TableSize
	IndexSize      = advice.IndexSize
	Statement      = advice.Statement
	StatementOrder = advice.StatementOrder
)
