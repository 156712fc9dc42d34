package cli

import (
	"net"

	"holdfast/engine/model"
	"holdfast/server"
	"holdfast/server/metrics"
)

// watching holds the Prometheus metrics, which observe the appliance's events.
type watching struct {
	metrics  *metrics.Metrics // nil without a listener
	listener net.Listener
}

func watch(listener net.Listener) *watching {
	w := &watching{listener: listener}
	if listener != nil {
		w.metrics = metrics.New(version())
	}
	return w
}

// event passes an event of the appliance to the metrics.
func (w *watching) event(event model.Event) {
	if w.metrics != nil {
		w.metrics.Event(event)
	}
}

// serve adds the metrics to the server's options.
func (w *watching) serve(opts server.Options) server.Options {
	if w.metrics != nil {
		opts.Metrics, opts.MetricsListener, opts.Answered = w.metrics.Handler(), w.listener, w.metrics.Request
	}
	return opts
}
