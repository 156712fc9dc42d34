package insight

import (
	"context"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/advice"
	"holdfast/engine/model"
)

// Relations returns the tables and the indexes of a database with their sizes, the largest first.
func (s *Service) Relations(ctx context.Context, call *model.Call, id string) (tables []advice.TableSize, indexes []advice.IndexSize, err error) {
	db, err := s.databases.Database(call, id)
	if err != nil {
		return nil, nil, err
	}
	err = s.databases.Inspect(ctx, db, db.Name, func(ctx context.Context, conn *pgx.Conn) (err error) {
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
