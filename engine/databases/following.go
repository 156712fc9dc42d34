package databases

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// inDatabase runs act in a session of the appliance's own role in the tenant's database.
func (s *Service) inDatabase(ctx context.Context, db model.Database, act func(context.Context, *pgx.Conn) error) error {
	conn, err := s.Instances.Connect(ctx, db.ID, db.Name)
	if err != nil {
		return fmt.Errorf("connect to instance: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return act(ctx, conn)
}

// Subscribe makes a database that is being imported apply a source's changes.
func (s *Service) Subscribe(ctx context.Context, db model.Database, subscription postgres.Subscription) error {
	return s.inDatabase(ctx, db, subscription.Subscribe)
}

// PauseSubscription ends that until the next Subscribe.
func (s *Service) PauseSubscription(ctx context.Context, db model.Database, name string) error {
	return s.inDatabase(ctx, db, func(ctx context.Context, conn *pgx.Conn) error { return postgres.PauseSubscription(ctx, conn, name) })
}

// Unsubscribe ends it for good.
func (s *Service) Unsubscribe(ctx context.Context, db model.Database, name string) error {
	return s.inDatabase(ctx, db, func(ctx context.Context, conn *pgx.Conn) error { return postgres.Unsubscribe(ctx, conn, name) })
}

// SubscriptionState returns the state of the subscription of a database that is being imported.
func (s *Service) SubscriptionState(ctx context.Context, db model.Database, name string) (state postgres.SubscriptionState, err error) {
	return state, s.inDatabase(ctx, db, func(ctx context.Context, conn *pgx.Conn) (err error) {
		state, err = postgres.StateOfSubscription(ctx, conn, name)
		return err
	})
}

// Checkpoint makes everything that was committed durable, also what was committed asynchronously.
func (s *Service) Checkpoint(ctx context.Context, db model.Database) error {
	return s.maintain(ctx, db.ID, func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "checkpoint")
		return err
	})
}

// EndFollowing restarts the server of a database that was imported without the settings of a subscriber.
func (s *Service) EndFollowing(ctx context.Context, db model.Database) error {
	db.Following = false
	spec, err := s.Spec(ctx, db)
	if err != nil {
		return err
	}
	err = s.Instances.Reconfigure(ctx, db.ID, s.Timeouts.Stop, func(it *postgres.Spec) { it.Config.Settings = spec.Config.Settings })
	if err != nil {
		return fmt.Errorf("restart without a subscriber's settings: %w", err)
	}
	return nil
}

var (
	applyExit = regexp.MustCompile(`background worker "logical replication[^"]*" \(PID (\d+)\) exited`)
	logPID    = regexp.MustCompile(`^\S+ \S+ \S+ \[(\d+)\] [A-Z]+[1-5]?:  (.*)`)
)

// ApplyError returns why the worker that applies changes has last failed, as the server's log says, "" if it does not.
func (s *Service) ApplyError(db model.Database) string {
	text, _, err := postgres.LogTail(s.DataDirectory(db.ID, db.Generation), logTail)
	if err != nil {
		return ""
	}
	return applyError(selectLines(text, LogFilter{}))
}

func applyError(lines []LogLine) string {
	worker := ""
	var said []string
	for _, line := range slices.Backward(lines) {
		if worker == "" {
			if exit := applyExit.FindStringSubmatch(line.Text); exit != nil {
				worker = exit[1]
			}
			continue
		}
		entry := logPID.FindStringSubmatch(line.Text)
		if entry == nil || entry[1] != worker {
			continue
		}
		switch line.Level {
		case "DETAIL", "CONTEXT", "HINT":
			said = append(said, entry[2])
		case "ERROR", "FATAL":
			said = append(said, entry[2])
			slices.Reverse(said)
			return strings.Join(said, "; ")
		}
	}
	return ""
}
