package cli_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/cli/client"
	"holdfast/server/api/wire"
)

// branchAndSleep repeatedly makes a branch of a database that pgbench uses, lets it fall asleep, wakes it and deletes it.
func (s *soak) branchAndSleep(over context.Context, actors *sync.WaitGroup) {
	api, hangUp := s.newAPI(1)
	actors.Go(func() {
		defer hangUp()
		for n := 0; over.Err() == nil; n++ {
			s.branch(api, fmt.Sprintf("branch-%d-%d", s.figures.cycle, n))
			think(over, *soakThink)
		}
	})
}

// branch does all that with one branch.
func (s *soak) branch(api *client.Client, name string) {
	parent := rand.IntN(len(s.databases))
	parent -= parent % benchedEvery
	var id, url string
	ok := s.ask("branch", func(ctx context.Context) (err error) {
		id, err = makeBranch(ctx, api, s.databases[parent], name)
		return err
	})
	if id == "" {
		return
	}
	ok = ok && s.ask("rotate a password", func(ctx context.Context) error {
		connection, err := api.RotateDatabasePassword(ctx, id, wire.RotatePassword{})
		url = connection.ConnectionURL
		return err
	})
	ok = ok && s.ask("look at a branch", func(ctx context.Context) error { return expectSums(ctx, url) })
	ok = ok && s.ask("fall asleep", func(ctx context.Context) error { return awaitSleep(ctx, api, id) })
	if ok {
		s.ask("wake", func(ctx context.Context) error { return expectSums(ctx, url) })
	}
	for remove := func(ctx context.Context) error {
		_, err := api.DeleteDatabase(ctx, id)
		return err
	}; !s.ask("delete a branch", remove) && !s.t.Failed(); {
		time.Sleep(time.Second) // it was refused for now
	}
}

func makeBranch(ctx context.Context, api *client.Client, parent, name string) (id string, err error) {
	b, err := api.CreateBranch(ctx, parent, wire.CreateBranch{Name: name, SleepAfterSeconds: new(wire.WholeNumber(chaosSleep))})
	if err != nil {
		return "", err
	}
	op, err := api.AwaitOperation(ctx, b.Operation, nil)
	if err == nil && op.Status != wire.OperationCompleted {
		err = fmt.Errorf("%s: %s", op.Status, deref(op.Error))
	}
	return b.Database.ID, err
}

// awaitSleep waits until a database sleeps.
func awaitSleep(ctx context.Context, api *client.Client, id string) error {
	for {
		if d, err := api.GetDatabase(ctx, id); err != nil || d.Asleep {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.New("it does not fall asleep")
		case <-time.After(250 * time.Millisecond):
		}
	}
}

// expectSums checks that a database has every transaction of pgbench whole.
func expectSums(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var history, accounts, branches, tellers int
	err = conn.QueryRow(ctx, `select (select coalesce(sum(delta), 0) from pgbench_history), (select sum(abalance) from pgbench_accounts),
		(select sum(bbalance) from pgbench_branches), (select sum(tbalance) from pgbench_tellers)`).Scan(&history, &accounts, &branches, &tellers)
	if err == nil && (history != accounts || history != branches || history != tellers) {
		err = fmt.Errorf("sums of history, accounts, branches, tellers: %d, %d, %d, %d", history, accounts, branches, tellers)
	}
	return err
}
