package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/model"
)

// FollowSettings are the settings of a server that subscribes to the source of its import: one worker that applies
// changes, the process that starts it, and another try a second after it has failed.
func FollowSettings() map[string]string {
	return map[string]string{"max_logical_replication_workers": "2", "wal_retrieve_retry_interval": "1s"}
}

// OldestFollower is the first major version whose subscriptions apply changes with the rights of an ordinary role
// (run_as_owner).
const OldestFollower = 16

// Subscription is a subscription of the tenant's database that the appliance has made.
type Subscription struct {
	Name, Owner       string // the owner applies the changes, with its own rights
	Publication, Slot string // at the publisher
	ConnInfo          model.Secret
}

// Subscribe makes the subscription, or gives the existing one its connection and enables it. conn is the superuser's, in the
// tenant's database. password_required = false keeps the owner from changing the subscription: only a
// superuser may change one that has it, though its owner may drop it. So no code of the tenant can lead the server's worker to another address.
func (s Subscription) Subscribe(ctx context.Context, conn *pgx.Conn) error {
	var exists bool
	if err := conn.QueryRow(ctx, "select exists ("+subscriptionNamed+")", s.Name).Scan(&exists); err != nil {
		return fmt.Errorf("look for a subscription: %w", err)
	}
	name, connection := quoteName(s.Name), quoteLiteral(s.ConnInfo.Reveal())
	statements := []string{
		"CREATE SUBSCRIPTION " + name + " CONNECTION " + connection + " PUBLICATION " + quoteName(s.Publication) +
			" WITH (create_slot = false, slot_name = " + quoteLiteral(s.Slot) + ", copy_data = false, run_as_owner = true, password_required = false, streaming = off)",
		"ALTER SUBSCRIPTION " + name + " OWNER TO " + quoteName(s.Owner),
	}
	if exists {
		statements = []string{"ALTER SUBSCRIPTION " + name + " CONNECTION " + connection, "ALTER SUBSCRIPTION " + name + " ENABLE"}
	}
	if err := run(ctx, conn, statements); err != nil {
		return fmt.Errorf("subscribe: %w", err)
	}
	return nil
}

// subscriptionNamed selects a subscription of the session's database.
const subscriptionNamed = "select from pg_subscription where subname = $1 and subdbid = (select oid from pg_database where datname = current_database())"

// PauseSubscription ends the worker of a subscription until the next Subscribe.
func PauseSubscription(ctx context.Context, conn *pgx.Conn, name string) error {
	if err := run(ctx, conn, []string{"ALTER SUBSCRIPTION " + quoteName(name) + " DISABLE"}); err != nil {
		return fmt.Errorf("pause subscription: %w", err)
	}
	return nil
}

// Unsubscribe drops a subscription, if it exists, and leaves the slot at the publisher. conn is the superuser's, in the
// tenant's database.
func Unsubscribe(ctx context.Context, conn *pgx.Conn, name string) error {
	var exists bool
	if err := conn.QueryRow(ctx, "select exists ("+subscriptionNamed+")", name).Scan(&exists); err != nil || !exists {
		return err
	}
	subscription := "SUBSCRIPTION " + quoteName(name)
	if err := run(ctx, conn, []string{"ALTER " + subscription + " DISABLE", "ALTER " + subscription + " SET (slot_name = NONE)", "DROP " + subscription}); err != nil {
		return fmt.Errorf("unsubscribe: %w", err)
	}
	return nil
}

// SubscriptionState is what the server says of a subscription.
type SubscriptionState struct {
	Exists, Enabled bool
	Failures        int64 // of applying changes, since the server's statistics began
}

// StateOfSubscription reads the state of a subscription. conn is the superuser's, in the tenant's database.
func StateOfSubscription(ctx context.Context, conn *pgx.Conn, name string) (s SubscriptionState, err error) {
	err = conn.QueryRow(ctx, `select s.oid is not null, coalesce(s.subenabled, false), coalesce(t.apply_error_count, 0)
		from (select 1) x left join pg_subscription s on s.subname = $1 and s.subdbid = (select oid from pg_database where datname = current_database())
		left join pg_stat_subscription_stats t on t.subid = s.oid`, name).Scan(&s.Exists, &s.Enabled, &s.Failures)
	if err != nil {
		return s, fmt.Errorf("read subscription: %w", err)
	}
	return s, nil
}
