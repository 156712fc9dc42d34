package cli_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"holdfast/cli/client"
	"holdfast/server/api/wire"
)

// chaosSleep is after how many seconds without clients a database sleeps, if it does: the shortest time there is.
const chaosSleep = 10

// letSleep switches the sleep of a database on or off, or has its writers leave it alone for so long that it falls asleep.
// Then everything else may happen to a database that sleeps, until they come back.
func (c *chaos) letSleep(ctx context.Context, random *rand.Rand, api *client.Client) bool {
	db := c.pickDatabase(random)
	if db == nil {
		return false
	}
	defer db.data.RUnlock()
	db.access.Lock()
	sleeps := len(db.sleeps) == 1 && db.sleeps[0] != 0
	if !sleeps || random.IntN(4) == 0 {
		c.setSleep(ctx, random, api, db)
		db.access.Unlock()
		return true
	}
	db.access.Unlock()
	db.mu.Lock()
	db.restUntil = time.Now().Add(chaosSleep*time.Second + time.Duration(random.IntN(10_000))*time.Millisecond)
	until := db.restUntil
	db.mu.Unlock()
	for ctx.Err() == nil && time.Now().Before(until) {
		record, err := api.GetDatabase(ctx, db.id)
		if err != nil || !record.Asleep {
			time.Sleep(200 * time.Millisecond) // between two polls
			continue
		}
		c.count("asleep")
		if random.IntN(2) == 0 {
			c.wake(ctx, db)
		}
		return true
	}
	return true
}

func (c *chaos) setSleep(ctx context.Context, random *rand.Rand, api *client.Client, db *chaosDatabase) {
	after, want := wire.Default[wire.WholeNumber](), int64(0)
	if random.IntN(4) > 0 {
		after, want = wire.SetTo[wire.WholeNumber](chaosSleep), chaosSleep
	}
	_, err := api.UpdateDatabase(ctx, db.id, wire.UpdateDatabase{SleepAfterSeconds: after})
	switch c.outcome("set the sleep", err, wire.CodeConflict) {
	case done:
		db.sleeps = []int64{want}
	case unknown:
		db.sleeps = append(db.sleeps, want)
	}
}

// wake connects to a database as many clients at once, which must all be let in.
func (c *chaos) wake(ctx context.Context, db *chaosDatabase) {
	began := time.Now()
	url, err := c.connectionURL(ctx, db)
	if err != nil {
		return
	}
	var sleepers sync.WaitGroup
	for range 8 {
		sleepers.Go(func() {
			db.mu.Lock()
			password := db.passwords[len(db.passwords)-1]
			unsure := len(db.passwords) > 1 || password == ""
			db.mu.Unlock()
			if unsure {
				return
			}
			if err := db.logIn(ctx, url, password); err != nil && !c.excused(began) && !isWrongPassword(err) {
				c.t.Errorf("%s did not wake: %v", db, err)
			}
		})
	}
	sleepers.Wait()
	c.count("woken")
}

// rests reports whether the writers leave the database alone.
func (d *chaosDatabase) rests() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return time.Now().Before(d.restUntil)
}
