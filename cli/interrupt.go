package cli

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// signalRepeat is how long the same signal may come again: timeout(1) and terminals send it to a process and to its group.
const signalRepeat = time.Second

// interruptible returns a context that the first SIGINT or SIGTERM ends. One that comes after signalRepeat kills the
// process.
func interruptible() (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(context.Background(), interruptions()...)
	context.AfterFunc(ctx, func() { time.AfterFunc(signalRepeat, stop) })
	return ctx, stop
}

func interruptions() []os.Signal { return []os.Signal{os.Interrupt, syscall.SIGTERM} }

// tellOfKill logs what goes on when a second signal ends the process at once. The caller calls stop.
func tellOfKill(log *slog.Logger) (stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, interruptions()...)
	var waiting sync.WaitGroup
	waiting.Go(func() {
		if s := secondOf(signals); s != nil {
			log.Warn("ended at once by a second signal: the databases keep running, and the next start adopts them", "signal", s)
			signal.Reset(interruptions()...)
			_ = syscall.Kill(os.Getpid(), s.(syscall.Signal))
		}
	})
	return func() {
		signal.Stop(signals)
		close(signals)
		waiting.Wait()
	}
}

// secondOf returns the signal that comes later than signalRepeat after the first, nil if the channel is closed before.
func secondOf(signals <-chan os.Signal) os.Signal {
	var first time.Time
	for s := range signals {
		if first.IsZero() {
			first = time.Now()
		} else if time.Since(first) > signalRepeat {
			return s
		}
	}
	return nil
}
