package imports

import (
	"context"
	"sync"
	"time"
)

// viewsShare bounds the filling of materialized views while a database follows to this part of the time, in 1/n.
const viewsShare = 20

// viewFilling fills materialized views in the background.
type viewFilling struct {
	due  time.Time
	end  context.CancelFunc
	runs sync.WaitGroup
	took chan time.Duration // receives how long it took; nil while none runs
}

// fillViews begins to fill the materialized views if that is due.
func (f *follower) fillViews(ctx context.Context) {
	v := &f.views
	if v.took != nil {
		select {
		case took := <-v.took:
			v.end()
			v.took, v.due = nil, time.Now().Add(max(f.service.ViewsInterval, viewsShare*took))
		default:
		}
		return
	}
	if time.Now().Before(v.due) || f.paused {
		return
	}
	ctx, v.end = context.WithCancel(ctx)
	v.took = make(chan time.Duration, 1)
	began, took := time.Now(), v.took
	v.runs.Go(func() {
		if err := f.source.FillViews(ctx); err != nil && ctx.Err() == nil {
			f.service.core.Log.Warn("fill materialized views of a database that follows", "database", f.db.ID, "error", err)
		}
		took <- time.Since(began)
	})
}

// endViews ends a filling and waits for its end.
func (f *follower) endViews() {
	if f.views.took != nil {
		f.views.end()
		f.views.runs.Wait()
		f.views.took = nil
	}
}
