package imports

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/importer"
	"holdfast/engine/model"
)

// How often an import that follows looks how far it is, writes its record, compares the definitions, and tries again
// what has failed.
const (
	followPoll        = time.Second
	followRecord      = 30 * time.Second
	followDefinitions = time.Minute
	followRetry       = 2 * time.Second
)

// follower is a running import after its copy.
type follower struct {
	*importRun
	service *Service
	plan    importer.Plan
	started bool // the server was started or adopted here

	gateway *importer.Gateway
	source  *importer.Follower

	failures   int64 // of the server's worker, when they were last looked at; negative before
	failedAt   time.Time
	activeAt   time.Time // when a worker last read the slot, or was started
	recorded   time.Time
	compared   time.Time
	definition bool  // the source's definitions differ from those of the copy
	changed    error // why the publication is not that of the copy, when it was last compared
	paused     bool  // the disk is nearly full
	views      viewFilling

	doubtful   bool // the appliance was started in the decided cutover: the source may have gone on
	doubted    time.Time
	considered bool // it was looked at since
}

// follow keeps the new database following its source until a cutover is done. Only a cancellation ends it before that:
// everything else is shown, and tried again.
func (s *Service) follow(ctx context.Context, r *importRun, plan importer.Plan, started bool) error {
	f := &follower{importRun: r, service: s, plan: plan, started: started, failures: -1}
	if r.resumed != nil && f.follow().Cut {
		f.doubtful, f.doubted = true, time.Now()
	}
	for {
		err := f.run(ctx)
		if err == nil || ctx.Err() != nil {
			return err
		}
		f.show(core.ExplainDiskFull(err))
		select {
		case <-time.After(followRetry):
		case request := <-r.cutovers:
			request.answer <- model.Errorf(model.CodeConflict, "the new database does not follow its source now: %s", databases.OperationMessage(err))
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// run subscribes and follows until the cutover is done, or something fails that a new subscription may help.
func (f *follower) run(ctx context.Context) (err error) {
	if err := f.start(ctx); err != nil {
		return err
	}
	f.source = importer.NewFollower(f.importRun.source, f.account, importer.Follower{
		Follow: importer.Following{Publication: f.follow().Publication, Slot: f.follow().Slot}, Owner: f.db.Owner, Plan: f.plan, Target: f.target,
	})
	defer f.source.Close()
	if f.follow().Cut {
		followsOn, err := f.reconsider(ctx)
		if err != nil {
			return err
		}
		if !followsOn {
			return f.complete(ctx)
		}
	}
	if f.gateway, err = importer.OpenGateway(ctx, f.service.relayDir(), f.importRun.source); err != nil {
		return err
	}
	defer f.gateway.Close()
	if err := f.subscribe(ctx); err != nil {
		return err
	}
	f.activeAt = time.Now()
	f.views.due = f.activeAt.Add(f.service.ViewsInterval)
	defer f.endViews()
	return f.watch(ctx)
}

// start starts or adopts the server after a start of the appliance.
func (f *follower) start(ctx context.Context) error {
	if f.started {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, f.service.databases.Timeouts.Start)
	defer cancel()
	db, err := f.service.databases.StartInstance(ctx, f.db)
	if err != nil {
		return fmt.Errorf("start the new database's server: %w", err)
	}
	f.db, f.started = db, true
	return nil
}

func (f *follower) follow() model.ImportFollow { return *f.account.Snapshot().Follow }

func (f *follower) target(ctx context.Context) (*pgx.Conn, error) {
	return f.service.databases.Instances.ConnectLocal(ctx, f.db.ID)
}

// subscribeTimeout bounds a subscription, which reads the list of tables from the source.
const subscribeTimeout = 2 * time.Minute

func (f *follower) subscribe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, subscribeTimeout)
	defer cancel()
	err := f.service.databases.Subscribe(ctx, f.db, subscription(f.db, f.follow(), f.gateway.ConnInfo()))
	if trouble := f.gateway.Trouble(); err != nil && trouble != nil {
		return trouble
	}
	return err
}

// watch shows how far the new database is until the cutover is done.
func (f *follower) watch(ctx context.Context) error {
	ticker := time.NewTicker(followPoll)
	defer ticker.Stop()
	for {
		again, err := f.look(ctx)
		if again {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		f.show(err)
		f.fillViews(ctx)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		case request := <-f.cutovers:
			f.endViews()
			if done, err := f.cutOver(ctx, request); done {
				return err
			}
		}
	}
}

// show records why the new database does not follow, nil if it does, and the progress from time to time.
func (f *follower) show(trouble error) {
	said := ""
	if trouble != nil {
		said = databases.OperationMessage(trouble)
	}
	if said != f.follow().Trouble {
		if said != "" {
			f.account.Say(model.ImportWarning, "does not follow: "+said)
		} else {
			f.account.Say(model.ImportInfo, "follows again")
		}
		f.account.ChangeFollow(func(follow *model.ImportFollow) { follow.Trouble = said })
		f.recorded = time.Time{}
	}
	if time.Since(f.recorded) < followRecord {
		return
	}
	f.recorded = time.Now()
	if err := f.service.recordNow(f.importRun); err != nil {
		f.service.core.Log.Warn("record the account of an import", "import", f.account.Snapshot().ID, "error", err)
	}
}
